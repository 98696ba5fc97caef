//! Unpacking a zip of one CSV, within bounds: what it says of its own sizes is not believed.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use super::fields::MOST_BYTES;

/// No catalogue's zip has more files.
const MOST_FILES: usize = 16;

/// Returns the content of the file `name`; an error says in what it is no such zip.
pub(super) fn unpack(zip: &[u8], name: &str) -> Result<Vec<u8>, String> {
    unpack_within(zip, name, MOST_BYTES)
}

fn unpack_within(zip: &[u8], name: &str, most: u64) -> Result<Vec<u8>, String> {
    let broken = |_| "it is no zip that can be read".to_owned();
    let mut archive = ZipArchive::new(Cursor::new(zip)).map_err(broken)?;
    if archive.len() > MOST_FILES {
        return Err("its zip has too many files".to_owned());
    }
    let file = archive.by_name(name).map_err(|_| format!("its zip has no `{name}` that can be read"))?;
    let mut text = Vec::new();
    file.take(most + 1).read_to_end(&mut text).map_err(|_| "its zip is damaged".to_owned())?;
    if text.len() as u64 > most {
        return Err("it is too large".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
pub(in crate::cloud::gcp) mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    /// A zip of these files.
    pub(in crate::cloud::gcp) fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        for (name, content) in files {
            zip.start_file(*name, options).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn the_one_file_is_taken_out() {
        let zip = packed(&[("readme", b"x"), ("gcp.csv", b"a,b\n1,2\n")]);
        assert_eq!(unpack(&zip, "gcp.csv").unwrap(), b"a,b\n1,2\n");
        assert!(unpack(&zip, "aws.csv").is_err());
        assert!(unpack(b"", "gcp.csv").is_err() && unpack(b"<html>", "gcp.csv").is_err());
        let crowd: Vec<(String, &[u8])> = (0..17).map(|at| (format!("{at}"), &b"x"[..])).collect();
        let crowd: Vec<(&str, &[u8])> = crowd.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        assert!(unpack(&packed(&crowd), "0").unwrap_err().contains("too many"));
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let bomb = packed(&[("gcp.csv", &vec![b'0'; 4_000_000])]);
        assert!(bomb.len() < 20_000, "{}", bomb.len());
        assert_eq!(unpack_within(&bomb, "gcp.csv", 1_000_000).unwrap_err(), "it is too large");
        assert_eq!(unpack_within(&bomb, "gcp.csv", 4_000_000).unwrap().len(), 4_000_000);
    }

    #[test]
    fn a_zip_that_lies_about_its_size_is_read_within_bounds_too() {
        let mut zip = packed(&[("gcp.csv", &vec![b'0'; 100_000])]);
        // The size before compression, in the local header and in the directory.
        let size = 100_000_u32.to_le_bytes();
        let places: Vec<usize> = (0..zip.len() - 4).filter(|at| zip[*at..*at + 4] == size).collect();
        for at in places {
            zip[at..at + 4].copy_from_slice(&10_u32.to_le_bytes());
        }
        assert!(unpack_within(&zip, "gcp.csv", 50_000).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_and_any_damage_are_survived(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
        ) {
            prop_assert!(unpack(&bytes, "gcp.csv").is_err());
            let mut zip = packed(&[("gcp.csv", b"instance_name,location,price\na,b,1\n")]);
            for (at, byte) in damage {
                let at = at.index(zip.len());
                zip[at] = byte;
            }
            if let Ok(text) = unpack_within(&zip, "gcp.csv", 1000) {
                prop_assert!(text.len() <= 1000);
            }
        }
    }
}
