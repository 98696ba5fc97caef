//! Our instance types, `RTX 4090 x1`, and what is kept in an offer's id beside them.

use std::fmt;

/// A GPU as Vast spells it, and a count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InstanceType {
    /// The GPU, byte for byte: names with blanks at their end exist.
    pub(super) gpu: String,
    /// How many.
    pub(super) count: u32,
}

impl InstanceType {
    /// Reads an instance type, from the right; none if it is not one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (gpu, count) = text.rsplit_once(" x")?;
        let count = count.parse().ok().filter(|count| *count > 0)?;
        (!gpu.trim().is_empty()).then(|| InstanceType { gpu: gpu.to_owned(), count })
    }
}

impl fmt::Display for InstanceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x{}", self.gpu, self.count)
    }
}

/// The ask and the machine behind an offer, `21348645.37228`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// What goes into the create.
    pub(super) ask: u64,
    /// The machine it is a part of.
    pub(super) machine: u64,
}

impl Slot {
    /// Reads what [`Slot`] writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (ask, machine) = text.split_once('.')?;
        Some(Slot { ask: ask.parse().ok()?, machine: machine.parse().ok()? })
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.ask, self.machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_slots_are_written_and_read() {
        let odd = InstanceType { gpu: "RTX 4090 x2 ".to_owned(), count: 8 };
        assert_eq!(odd.to_string(), "RTX 4090 x2  x8");
        assert_eq!(InstanceType::parse(&odd.to_string()), Some(odd));
        for bad in ["", "RTX 4090", "RTX 4090 x0", " x1", "RTX 4090 xx"] {
            assert_eq!(InstanceType::parse(bad), None, "{bad}");
        }
        assert_eq!(Slot::parse("21348645.37228"), Some(Slot { ask: 21_348_645, machine: 37_228 }));
        for bad in ["", "1", "1.", ".1", "1.x", "-1.2"] {
            assert_eq!(Slot::parse(bad), None, "{bad}");
        }
    }
}
