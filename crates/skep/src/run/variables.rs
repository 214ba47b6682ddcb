//! Variables of the command line: `--env`, `--env-file` and `--secret`.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::{Context, bail, ensure};

/// Variables by their names.
pub(super) type Variables = BTreeMap<String, String>;

/// The variables of files and of `NAME=VALUE`, which take precedence. `NAME` alone has its value from `own`, the environment of
/// this process.
pub(super) fn variables(
    files: &[PathBuf],
    pairs: &[String],
    own: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Variables> {
    let mut all = Variables::new();
    for file in files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = || format!("{}:{}", file.display(), number + 1);
            all.extend([variable(line, &own).with_context(place)?]);
        }
    }
    for pair in pairs {
        all.extend([variable(pair, &own).with_context(|| "--env")?]);
    }
    Ok(all)
}

fn variable(pair: &str, own: impl Fn(&str) -> Option<String>) -> anyhow::Result<(String, String)> {
    let (name, value) = match pair.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => (pair, own(pair).with_context(|| format!("{pair} is not set here: write {pair}=VALUE"))?),
    };
    check_name(name)?;
    Ok((name.to_owned(), value))
}

/// The secrets of `--secret`: `NAME` or `id=NAME` from the variable of that name, `id=NAME,env=OTHER` from another one, and
/// `id=NAME,src=FILE` from a file.
pub(super) fn secrets(words: &[String], own: impl Fn(&str) -> Option<String>) -> anyhow::Result<Variables> {
    words.iter().map(|word| secret(word, &own).with_context(|| "--secret")).collect()
}

fn secret(word: &str, own: impl Fn(&str) -> Option<String>) -> anyhow::Result<(String, String)> {
    let (mut id, mut variable, mut file) = (None, None, None);
    for part in word.split(',') {
        match part.split_once('=') {
            Some(("id", value)) => id = Some(value),
            Some(("env", value)) => variable = Some(value),
            Some(("src" | "source", value)) => file = Some(value),
            None if part == word => id = Some(part),
            // A value must not appear in a message.
            _ => bail!("write NAME, id=NAME,env=VARIABLE or id=NAME,src=FILE"),
        }
    }
    let id = id.context("write id=NAME")?;
    check_name(id)?;
    ensure!(variable.is_none() || file.is_none(), "{id}: use env or src, not both");
    let value = match file {
        Some(file) => {
            let text = fs::read_to_string(file).with_context(|| format!("{id}: cannot read {file}"))?;
            text.strip_suffix('\n').unwrap_or(&text).to_owned()
        }
        None => {
            let variable = variable.unwrap_or(id);
            own(variable).with_context(|| format!("{id}: the variable {variable} is not set here"))?
        }
    };
    Ok((id.to_owned(), value))
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let starts_with_digit = name.starts_with(|c: char| c.is_ascii_digit());
    ensure!(
        !name.is_empty() && !starts_with_digit && name.chars().all(fits),
        "{name:?} is not the name of a variable"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str) -> Option<String> {
        (name == "HERE").then(|| "from here".to_owned())
    }

    fn of(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn variables_come_from_files_pairs_and_the_environment_and_pairs_take_precedence() {
        let file = std::env::temp_dir().join(format!("skep-env-{}", std::process::id()));
        fs::write(&file, "# a comment\n\nA=1\n  B=x=y # z\nHERE\n").unwrap();
        let read = variables(std::slice::from_ref(&file), &["A=2".into(), "C=".into()], own).unwrap();
        assert_eq!(read, of(&[("A", "2"), ("B", "x=y # z"), ("C", ""), ("HERE", "from here")]));
        fs::write(&file, "A=1\nTHERE\n").unwrap();
        let error = format!("{:#}", variables(std::slice::from_ref(&file), &[], own).unwrap_err());
        assert!(error.ends_with(":2: THERE is not set here: write THERE=VALUE"), "{error}");
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_secret_comes_from_a_variable_or_a_file() {
        let file = std::env::temp_dir().join(format!("skep-secret-{}", std::process::id()));
        fs::write(&file, "hunter2\n").unwrap();
        let words = ["HERE".to_owned(), "id=A,env=HERE".to_owned(), format!("id=B,src={}", file.display())];
        let expected = of(&[("HERE", "from here"), ("A", "from here"), ("B", "hunter2")]);
        assert_eq!(secrets(&words, own).unwrap(), expected);
        for wrong in ["THERE", "A=hunter2", "id=A,env=HERE,src=x", "env=HERE", "id=1A", "id=A,hunter2"] {
            let error = format!("{:#}", secrets(&[wrong.to_owned()], own).unwrap_err());
            assert!(!error.contains("hunter2"), "{error}");
        }
        fs::remove_file(file).unwrap();
    }
}
