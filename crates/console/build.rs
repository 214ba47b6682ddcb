//! Lists the files of the page for `assets.rs`, which embeds them as they are.

use std::{env, error::Error, fmt::Write, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("web");
    println!("cargo::rerun-if-changed=web");
    let mut list = String::from("static FILES: &[(&str, &[u8])] = &[\n");
    add(&folder, &folder, &mut list)?;
    list.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("assets.rs"), list)?;
    Ok(())
}

fn add(root: &Path, folder: &Path, list: &mut String) -> Result<(), Box<dyn Error>> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            add(root, &path, list)?;
        } else if path
            .extension()
            .is_some_and(|extension| ["html", "css", "js", "svg"].iter().any(|one| extension == *one))
        {
            let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
            // Not the path of this clone, as what this writes may be used in another.
            let file = format!("/web/{name}");
            writeln!(
                list,
                "    (\"/{name}\", include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {file:?}))),"
            )?;
        }
    }
    Ok(())
}
