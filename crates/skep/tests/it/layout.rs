//! The folders of each crate build on each other: there is no circle of imports among them. And no path of a clone is compiled in.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use skep_testkit::repository;

use crate::docs;

type Imports = BTreeMap<String, BTreeSet<String>>;

/// The folders below this one, each with those of its neighbours that its files import.
fn imports(source: &Path) -> Imports {
    let entries = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
    let folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let names: BTreeSet<String> = folders.iter().map(name).collect();
    let imported = |folder: &PathBuf| {
        let mut all: BTreeSet<String> = files(folder).iter().flat_map(|file| imported(file)).collect();
        all.remove(&name(folder));
        &all & &names
    };
    folders.iter().map(|folder| (name(folder), imported(folder))).collect()
}

/// The Rust files of a folder, without those of its tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, here): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let is_source = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.ends_with(".rs") && !name.ends_with("tests.rs")
    };
    let inner = folders.iter().filter(|folder| !folder.ends_with("tests")).flat_map(|folder| files(folder));
    here.into_iter().filter(is_source).chain(inner).collect()
}

/// The modules of its crate that a file names, apart from its tests.
fn imported(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = code.collect::<Vec<_>>().join("\n");
    code.split("crate::").skip(1).flat_map(named).collect()
}

/// What follows `crate::`: one name, or a list.
fn named(path: &str) -> Vec<String> {
    match path.strip_prefix('{') {
        Some(list) => heads(list),
        None => vec![path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()],
    }
}

/// The first words of the items of a list, up to the brace that closes it.
fn heads(list: &str) -> Vec<String> {
    let (mut depth, mut item, mut heads) = (0, String::new(), Vec::new());
    for letter in list.chars() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                heads.extend(item.trim().split("::").next().map(str::to_owned));
                item.clear();
                if letter == '}' {
                    break;
                }
            }
            _ if depth == 0 => item.push(letter),
            _ => {}
        }
    }
    heads
}

/// What can be got to from a folder.
fn reachable(from: &str, imports: &Imports) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut next = vec![from.to_owned()];
    while let Some(folder) = next.pop() {
        for imported in imports.get(&folder).into_iter().flatten() {
            if seen.insert(imported.clone()) {
                next.push(imported.clone());
            }
        }
    }
    seen
}

/// The largest sets of folders that import each other.
fn circles(imports: &Imports) -> BTreeSet<Vec<String>> {
    let with = |folder: &String| {
        let mutual =
            reachable(folder, imports).into_iter().filter(|other| reachable(other, imports).contains(folder));
        mutual.collect::<Vec<String>>()
    };
    imports.keys().map(with).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn the_folders_of_no_crate_import_each_other_in_a_circle() {
    let crates = repository("crates");
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let (name, source) = {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), entry.path().join("src"))
        };
        if source.is_dir() {
            found.extend(circles(&imports(&source)).into_iter().map(|circle| (name.clone(), circle)));
        }
    }
    assert!(found.is_empty(), "folders that import each other: {found:?}");
}

/// CI uses what it has built in another clone if the files are the same.
#[test]
fn nothing_that_is_built_names_the_clone_it_was_built_in() {
    let compiled_in = concat!("env!(\"CARGO_", "MANIFEST_DIR\")");
    for folder in ["crates", "e2e", "bench"].map(repository) {
        for file in docs::files(&folder, "rs").iter().filter(|file| !file.ends_with("build.rs")) {
            assert!(!fs::read_to_string(file).unwrap().contains(compiled_in), "{}", file.display());
        }
    }
}

#[test]
fn a_circle_is_found_however_its_imports_are_written() {
    let all: Imports = [("a", vec!["b"]), ("b", vec!["c"]), ("c", vec!["a", "d"]), ("d", vec![])]
        .map(|(name, imported)| (name.to_owned(), imported.into_iter().map(str::to_owned).collect()))
        .into();
    assert_eq!(circles(&all), BTreeSet::from([["a", "b", "c"].map(str::to_owned).to_vec()]));
    assert_eq!(named("limits::BODIES;"), ["limits"]);
    assert_eq!(heads("a, b::{c, d::{e}}, f::g as h}; use x::{y}"), ["a", "b", "f"]);
    assert_eq!(heads("\n    limits,\n    http::{Body, response},\n}"), ["limits", "http", ""]);
}
