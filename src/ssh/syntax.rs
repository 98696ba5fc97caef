//! How ssh reads a line of its configuration, and patterns of file names as `Include` has them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directive {
    /// The keyword in lower case.
    pub(super) keyword: Vec<u8>,
    /// The arguments, quotes and escapes resolved.
    pub(super) arguments: Vec<Vec<u8>>,
}

/// Returns the directive of a line; none for blank lines and comments.
pub(super) fn directive(line: &[u8]) -> Option<Directive> {
    let line = line.trim_ascii();
    if line.is_empty() || line.starts_with(b"#") {
        return None;
    }
    let (keyword, rest) = match line.strip_prefix(b"\"") {
        Some(quoted) => {
            let end = quoted.iter().position(|b| *b == b'"')?;
            (&quoted[..end], &quoted[end + 1..])
        }
        None => {
            let end = line.iter().position(|b| b.is_ascii_whitespace() || *b == b'=').unwrap_or(line.len());
            line.split_at(end)
        }
    };
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b"=").unwrap_or(rest);
    Some(Directive { keyword: keyword.to_ascii_lowercase(), arguments: arguments(rest) })
}

/// Splits arguments as OpenSSH 8.7 and later do: white space separates, single and double quotes hold together, a backslash
/// escapes quotes and itself (and a space outside quotes), a `#` at the start of an argument ends the line. An open quote
/// goes to the end (ssh refuses such a file).
fn arguments(text: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut bytes = text.iter().copied().peekable();
    loop {
        while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
        match bytes.peek() {
            None | Some(b'#') => return all,
            Some(_) => {}
        }
        let mut word = Vec::new();
        let mut quote = None;
        while let Some(byte) = bytes.next_if(|b| quote.is_some() || !b.is_ascii_whitespace()) {
            let escaped = |b: &u8| matches!(b, b'"' | b'\'' | b'\\') || (quote.is_none() && *b == b' ');
            if byte == b'\\'
                && let Some(next) = bytes.next_if(escaped)
            {
                word.push(next);
            } else if quote == Some(byte) {
                quote = None;
            } else if quote.is_none() && matches!(byte, b'"' | b'\'') {
                quote = Some(byte);
            } else {
                word.push(byte);
            }
        }
        all.push(word);
    }
}

/// Whether `name` fits `pattern` with `*`, `?`, `[...]`, `[!...]` (also `[^...]`) and backslash, as in a file name: a leading
/// dot must be written, and a slash is never part of either.
pub(super) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !pattern.starts_with(b".") && !pattern.starts_with(b"\\.") {
        return false;
    }
    // Where to go on after a mismatch: the last star, and how much of the name it has taken so far.
    let mut star = None;
    let (mut p, mut n) = (0, 0);
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, n));
            p += 1;
            continue;
        }
        match one(&pattern[p..], name[n]) {
            Some(length) => (p, n) = (p + length, n + 1),
            None => match star.as_mut() {
                Some((after, taken)) => {
                    *taken += 1;
                    (p, n) = (*after, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

/// Returns how many bytes at the start of `pattern` take the one byte `byte`; none if they do not.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', next, ..] => (*next == byte).then_some(2),
        [b'[', set @ ..] => {
            let negated = matches!(set.first(), Some(b'!' | b'^'));
            let start = usize::from(negated);
            // A `]` right at the start is a member.
            let length = set.iter().skip(start + 1).position(|b| *b == b']').map(|at| at + start + 1);
            let Some(length) = length else { return (byte == b'[').then_some(1) };
            let mut members = &set[start..length];
            let mut found = false;
            while let [first, rest @ ..] = members {
                if let [b'-', last, after @ ..] = rest {
                    found |= (*first..=*last).contains(&byte);
                    members = after;
                } else {
                    found |= *first == byte;
                    members = rest;
                }
            }
            (found != negated).then_some(length + 2)
        }
        [same, ..] => (*same == byte).then_some(1),
    }
}

/// Whether the absolute `path` fits the absolute `pattern`, component by component.
pub(super) fn path_fits(pattern: &[u8], path: &Path) -> bool {
    let (patterns, names) = (components(pattern), components(path.as_os_str().as_bytes()));
    patterns.len() == names.len() && patterns.iter().zip(names).all(|(pattern, name)| fits(pattern, name))
}

/// Returns the existing paths that fit the absolute `pattern`, sorted, at most 1000.
pub(super) fn expand(pattern: &[u8]) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for part in components(pattern) {
        let magic = part.iter().any(|b| matches!(b, b'*' | b'?' | b'[' | b'\\'));
        found = found
            .into_iter()
            .flat_map(|folder| {
                if magic { matching(&folder, part) } else { vec![folder.join(OsStr::from_bytes(part))] }
            })
            .filter(|path| path.exists())
            .take(1000)
            .collect();
    }
    found
}

fn matching(folder: &Path, pattern: &[u8]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries
        .filter(|entry| fits(pattern, entry.file_name().as_bytes()))
        .map(|entry| entry.path())
        .collect();
    all.sort();
    all
}

fn components(path: &[u8]) -> Vec<&[u8]> {
    path.split(|b| *b == b'/').filter(|part| !part.is_empty() && *part != b".").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, Vec<String>)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        directive(line.as_bytes()).map(|d| (text(d.keyword), d.arguments.into_iter().map(text).collect()))
    }

    #[test]
    fn lines_are_read_as_ssh_reads_them() {
        for (line, keyword, arguments) in [
            ("Host dev", "host", vec!["dev"]),
            ("  HOST=dev\r\n", "host", vec!["dev"]),
            ("host = dev", "host", vec!["dev"]),
            ("Host\tdev  x", "host", vec!["dev", "x"]),
            ("\"Host\" dev", "host", vec!["dev"]),
            ("Host a\\ b dev#x \"c d\" 'e f' # g", "host", vec!["a b", "dev#x", "c d", "e f"]),
            ("Include \"/a b/*.conf\"", "include", vec!["/a b/*.conf"]),
            ("Include \"/a\"b", "include", vec!["/ab"]),
            ("Host \"a\\\"b\" c\\\\d e\\f", "host", vec!["a\"b", "c\\d", "e\\f"]),
            ("Host \"open quote", "host", vec!["open quote"]),
            ("Host", "host", vec![]),
        ] {
            let arguments = arguments.into_iter().map(str::to_owned).collect();
            assert_eq!(read(line), Some((keyword.to_owned(), arguments)), "{line}");
        }
        for nothing in ["", "  ", "# Host dev", "\r\n", "\t#"] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn file_name_patterns() {
        for (pattern, name, fit) in [
            ("*.conf", "a.conf", true),
            ("*.conf", ".conf", false),
            ("*.conf", "a.config", false),
            (".*", ".x", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbY", false),
            ("?", "a", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[[]", "[", true),
            ("[a", "[a", true),
            ("[*]", "*", true),
            ("[*]", "x", false),
            ("\\*", "*", true),
            ("**", "", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), fit, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_find_files() {
        let top = tempfile::tempdir().unwrap();
        for name in ["b.conf", "a.conf", ".c.conf", "d.txt"] {
            fs::write(top.path().join(name), "").unwrap();
        }
        let pattern = top.path().join("*.conf");
        let found = expand(pattern.as_os_str().as_bytes());
        assert_eq!(found, [top.path().join("a.conf"), top.path().join("b.conf")]);
        assert_eq!(expand(top.path().join("d.txt").as_os_str().as_bytes()).len(), 1);
        assert!(expand(b"/nonexistent-*/x").is_empty());
        assert!(path_fits(pattern.as_os_str().as_bytes(), &found[0]));
        assert!(!path_fits(b"/*.conf", &found[0]));
    }
}
