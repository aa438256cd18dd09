//! API keys: a file with their hashes, and the first key of a new installation.
//!
//! Invariants: the file holds hashes only; the text of the first key is written once, to a file of its owner, and never
//! said anywhere else; a key without a scope opens nothing. Deliberately absent: making further keys, which is adding
//! lines to the file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use figment::Figment;
use figment::providers::{Format as _, Toml};
use onceward_http::{ApiKey, Scope};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::data_dir;
use crate::failure::Failure;

/// Name of the file with the hashes.
pub(crate) const KEYS_FILE: &str = "keys.toml";
/// Name of the file with the text of the first key.
pub(crate) const FIRST_KEY_FILE: &str = "first-key";
/// Random bytes in a key: as hard to guess as the secret that ids are derived with.
const KEY_BYTES: usize = 32;
const KEY_PREFIX: &str = "ow_";

/// The keys of an installation.
pub(crate) struct Keys {
    /// Who may ask.
    pub(crate) keys: Vec<ApiKey>,
    /// Where the text of the first key lies, if it was made just now.
    pub(crate) first_key: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysFile {
    #[serde(default)]
    keys: Vec<KeyEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    name: String,
    sha256: String,
    scopes: Vec<String>,
}

/// Reads the keys of a data folder; on the first start makes one with every scope.
///
/// # Errors
/// When a file cannot be read or written, or an entry makes no sense.
pub(crate) fn load(data: &Path) -> Result<Keys, Failure> {
    let path = data.join(KEYS_FILE);
    let first_key = if path.exists() { None } else { Some(make_first(data, &path)?) };
    Ok(Keys { keys: read(&path)?, first_key })
}

fn make_first(data: &Path, keys_path: &Path) -> Result<PathBuf, Failure> {
    let text = format!("{KEY_PREFIX}{}", hex(&data_dir::random::<KEY_BYTES>()?));
    let first = data.join(FIRST_KEY_FILE);
    // A start that was cut off between the two files left a text without a hash: nobody can have used it.
    if first.exists() {
        fs::remove_file(&first).map_err(|cause| Failure::file("removing", &first, &cause))?;
    }
    data_dir::write_private(&first, format!("{text}\n").as_bytes())?;
    let scopes: Vec<String> = Scope::ALL.iter().map(|scope| format!("\"{}\"", scope.name())).collect();
    let entry = format!(
        "# Who may use this server: the SHA-256 of each key, never the key itself.\n\
         # printf %s \"$KEY\" | sha256sum\n\n\
         [[keys]]\nname = \"first\"\nsha256 = \"{}\"\nscopes = [{}]\n",
        hex(&Sha256::digest(text.as_bytes())),
        scopes.join(", "),
    );
    data_dir::write_private(keys_path, entry.as_bytes())?;
    Ok(first)
}

fn read(path: &Path) -> Result<Vec<ApiKey>, Failure> {
    let fault = |cause: String| Failure::Other(format!("reading the keys in {}: {cause}", path.display()));
    let file: KeysFile =
        Figment::from(Toml::file_exact(path)).extract().map_err(|cause| fault(cause.to_string()))?;
    file.keys
        .iter()
        .map(|entry| to_key(entry).map_err(|cause| fault(format!("`{}`: {cause}", entry.name))))
        .collect()
}

fn to_key(entry: &KeyEntry) -> Result<ApiKey, String> {
    let sha256 = unhex(&entry.sha256).ok_or("sha256 must be 64 hexadecimal digits")?;
    let scope_of = |name: &String| {
        let found = Scope::ALL.into_iter().find(|scope| scope.name() == name);
        found.ok_or_else(|| format!("`{name}` is not one of read, write, ops, approve"))
    };
    let scopes = entry.scopes.iter().map(scope_of).collect::<Result<_, _>>()?;
    Ok(ApiKey { name: Arc::from(entry.name.as_str()), sha256, scopes })
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes: Vec<u8> = pairs
        .iter()
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect::<Option<_>>()?;
    if rest.is_empty() { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se_01_the_first_key_has_every_scope_and_only_its_hash_is_kept() {
        let data = std::env::temp_dir().join(format!("onceward-keys-{}", std::process::id()));
        let _ = fs::remove_dir_all(&data);
        data_dir::make(&data).unwrap();
        let made = load(&data).unwrap();
        let text = fs::read_to_string(made.first_key.unwrap()).unwrap();
        let digest: [u8; 32] = Sha256::digest(text.trim()).into();
        assert_eq!((made.keys[0].sha256, made.keys[0].scopes.len()), (digest, Scope::ALL.len()));
        assert!(!fs::read_to_string(data.join(KEYS_FILE)).unwrap().contains(text.trim()));

        let again = load(&data).unwrap();
        assert_eq!((again.first_key, again.keys.len()), (None, 1));
        fs::remove_dir_all(&data).unwrap();
    }

    #[test]
    fn an_entry_that_makes_no_sense_is_refused() {
        let entry = |sha256: &str, scope: &str| KeyEntry {
            name: "shop".to_owned(),
            sha256: sha256.to_owned(),
            scopes: vec![scope.to_owned()],
        };
        assert!(to_key(&entry(&"ab".repeat(32), "read")).is_ok());
        for (sha256, scope) in [("ab", "read"), (&*"zz".repeat(32), "read"), (&*"ab".repeat(32), "root")] {
            assert!(to_key(&entry(sha256, scope)).is_err(), "{sha256} {scope}");
        }
    }
}
