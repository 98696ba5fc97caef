//! What is downloaded, pinned: versions, checksums, addresses.
//!
//! A new version is one change here and in the manifests; `docs/k8s.md` says how to check a new pin.

/// The version of k3s. Kubernetes 1.36 is maintained until 2027-06-28 (kubernetes.io, releases).
pub const VERSION: &str = "v1.36.4+k3s1";

/// SHA-256 of the release's `k3s` for amd64 (`sha256sum-amd64.txt` of the release).
pub const BINARY_AMD64: &str = "835873f37245fc615f547a2fe2af9402a347875f13fa64a1f136de644955ea3f";

/// SHA-256 of `install.sh` at the release's tag in k3s-io/k3s.
pub const INSTALLER: &str = "46177d4c99440b4c0311b67233823a8e8a2fc09693f6c89af1a7161e152fbfad";

/// Where the release's files are, without a slash at the end (`+` in a tag is `%2B` in an address).
pub const DOWNLOADS: &str = "https://github.com/k3s-io/k3s/releases/download/v1.36.4%2Bk3s1";

/// The installer of the same tag; `get.k3s.io` serves whatever is newest.
pub const SCRIPT_AT: &str = "https://raw.githubusercontent.com/k3s-io/k3s/v1.36.4%2Bk3s1/install.sh";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_of_one_version() {
        let (number, build) = VERSION.strip_prefix('v').unwrap().split_once("+k3s").unwrap();
        assert_eq!(number.split('.').filter(|part| part.parse::<u16>().is_ok()).count(), 3);
        assert!(build.parse::<u8>().is_ok());
        let tag = VERSION.replace('+', "%2B");
        assert!(DOWNLOADS.ends_with(&tag) && SCRIPT_AT.contains(&format!("/{tag}/")));
        for sum in [BINARY_AMD64, INSTALLER] {
            assert!(sum.len() == 64 && sum.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
        }
    }
}
