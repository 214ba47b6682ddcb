//! Variables of the server in files, as agents of secret stores write them beside a pod.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use tracing::warn;

use crate::limits;

/// The folder of the files cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("env_file_dir: cannot read {path}: {source}")]
pub struct EnvFileError {
    path: PathBuf,
    source: io::Error,
}

/// The variables of all files in the folder, by name; of two with the same name, that of the later file is used. A folder
/// that does not exist has none. A file that cannot be read is skipped, and logged.
pub(super) fn variables(folder: &str) -> Result<BTreeMap<String, String>, EnvFileError> {
    let mut variables = BTreeMap::new();
    if folder.is_empty() {
        return Ok(variables);
    }
    let failed = |source| EnvFileError { path: folder.into(), source };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(variables),
        entries => entries.map_err(failed)?,
    };
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(failed)?;
    files.retain(|path| path.is_file() && !is_hidden(path));
    files.sort();
    for path in files {
        match read(&path) {
            Ok(more) => variables.extend(more),
            Err(problem) => warn!(file = %path.display(), problem, "skipped a file of environment variables"),
        }
    }
    Ok(variables)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > limits::ENV_FILE {
        return Err(format!("it is larger than {} bytes", limits::ENV_FILE));
    }
    parsed(&fs::read_to_string(path).map_err(|error| error.to_string())?)
}

/// `NAME=VALUE` in each line, with `export ` before it or not. Values are not unquoted.
fn parsed(text: &str) -> Result<Vec<(String, String)>, String> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let assignments = lines.filter(|(_, line)| !line.starts_with('#')).filter_map(|(number, line)| {
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        Some((number, name.trim(), value))
    });
    assignments
        .map(|(number, name, value)| match name {
            "" => Err(format!("line {number} has no name")),
            name => Ok((name.to_owned(), value.to_owned())),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_variable_in_each_line() {
        let text = "# of the agent\n\nexport A=1\n B=\"two\"=2 \nnothing\nC=\n";
        let expected = [("A", "1"), ("B", "\"two\"=2"), ("C", "")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parsed(text).unwrap(), expected);
        assert_eq!(parsed("A=1\n=hunter2").unwrap_err(), "line 2 has no name");
    }

    #[test]
    fn later_files_override_earlier_ones_and_invalid_ones_are_skipped() {
        let folder = std::env::temp_dir().join(format!("skep-env-files-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub")).unwrap();
        for (name, text) in
            [("10-a", "X=1\nY=1"), ("20-b", "X=2"), ("30-c", "=3"), (".hidden", "X=4"), ("sub/d", "X=5")]
        {
            fs::write(folder.join(name), text).unwrap();
        }
        let loaded = variables(folder.to_str().unwrap());
        fs::remove_dir_all(&folder).unwrap();
        let expected = [("X", "2"), ("Y", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(loaded.unwrap(), expected.into());
        assert!(variables(folder.to_str().unwrap()).unwrap().is_empty(), "the folder was deleted");
        let file = std::env::current_exe().unwrap();
        let error = variables(file.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("env_file_dir: cannot read "), "{error}");
    }
}
