//! Tiers, and the instance type `<GPU id> x<count> <tier>`, which RunPod has no word of its own for.

use std::fmt;
use std::str::FromStr;

/// Whose machines: RunPod's vetted data centres, or hosts of anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// Data centres that RunPod vouches for.
    Secure,
    /// Hosts of the community.
    Community,
}

impl Tier {
    /// Both tiers.
    pub const ALL: [Tier; 2] = [Tier::Secure, Tier::Community];

    /// Returns the word of config and instance types.
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Secure => "secure",
            Tier::Community => "community",
        }
    }

    /// Returns the word on the wire.
    pub(super) fn wire(self) -> &'static str {
        match self {
            Tier::Secure => "SECURE",
            Tier::Community => "COMMUNITY",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is no tier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a RunPod tier: secure, community")]
pub struct TierError(String);

impl FromStr for Tier {
    type Err = TierError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Tier::ALL
            .into_iter()
            .find(|tier| tier.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| TierError(text.to_owned()))
    }
}

/// A GPU id, a count and a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InstanceType {
    /// The GPU id, byte for byte: ids with two blanks exist (github.com/runpod/docs/issues/633).
    pub(super) gpu_id: String,
    /// How many.
    pub(super) count: u32,
    /// The tier.
    pub(super) tier: Tier,
}

impl InstanceType {
    /// Reads an instance type, from the right; none if it is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (rest, tier) = text.rsplit_once(' ')?;
        let (gpu_id, count) = rest.rsplit_once(" x")?;
        let count = count.parse().ok().filter(|count| *count > 0)?;
        let gpu_id = Some(gpu_id).filter(|id| !id.trim().is_empty())?;
        Some(InstanceType { gpu_id: gpu_id.to_owned(), count, tier: tier.parse().ok()? })
    }
}

impl fmt::Display for InstanceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x{} {}", self.gpu_id, self.count, self.tier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_written_and_read_from_the_right() {
        let odd =
            InstanceType { gpu_id: "NVIDIA  A30 x2 secure".to_owned(), count: 8, tier: Tier::Community };
        assert_eq!(odd.to_string(), "NVIDIA  A30 x2 secure x8 community");
        assert_eq!(InstanceType::parse(&odd.to_string()), Some(odd));
        for bad in
            ["", "NVIDIA A30", "NVIDIA A30 x1", "NVIDIA A30 x0 secure", "NVIDIA A30 secure", " x1 secure"]
        {
            assert_eq!(InstanceType::parse(bad), None, "{bad}");
        }
    }
}
