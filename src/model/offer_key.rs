//! The id of an offer: everything needed to ask for it again later, in another shell, on another computer.

use std::fmt::Write;

use super::account::AccountId;
use super::money::Usd;
use super::want::Cuda;

/// What an offer's id carries. A stored format: scripts keep ids, so what is written today must be readable for ever.
///
/// Written as `1:ACCOUNT:TYPE:COUNT:ZONE:FIELDS...`, where each of FIELDS is a letter and a value. Blanks are `_`, other
/// characters outside `A-Z a-z 0-9 . -` are `/` and two hexadecimal digits for each byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferKey {
    /// The account that pays.
    pub account: AccountId,
    /// The cloud's exact type, byte for byte.
    pub instance_type: String,
    /// How many GPUs.
    pub gpu_count: u32,
    /// Zone or data centre; none if the cloud chooses.
    pub zone: Option<String>,
    /// Spot or on demand.
    pub spot: bool,
    /// Disk in GB, as the cloud is sent it.
    pub disk_gb: u32,
    /// CUDA floor.
    pub cuda: Option<Cuda>,
    /// Wish for memory in GB, whole machine, where the create carries it.
    pub ram_gb: Option<u32>,
    /// Wish for vCPUs, whole machine, where the create carries it.
    pub vcpus: Option<u32>,
    /// The price shown, per hour.
    pub price: Usd,
    /// What its own cloud needs beside these (Vast: the ask and the machine).
    pub own: Option<String>,
}

/// Why a text is no offer id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferKeyError {
    /// It is not in the form of an id.
    #[error("`{0}` is not an offer id; ids are the `id` of `gpuprov offers --json`")]
    Malformed(String),
    /// It was written by a later version.
    #[error("this offer id was made by a newer gpuprov; update gpuprov")]
    Newer,
}

impl OfferKey {
    /// Writes the id.
    pub fn encode(&self) -> String {
        let mut id = format!("1:{}:", self.account);
        escape(&self.instance_type, &mut id);
        let _ = write!(id, ":{}:", self.gpu_count);
        escape(self.zone.as_deref().unwrap_or_default(), &mut id);
        let _ = write!(id, ":{}:d{}", if self.spot { "s" } else { "o" }, self.disk_gb);
        if let Some(cuda) = self.cuda {
            let _ = write!(id, ":c{cuda}");
        }
        if let Some(ram) = self.ram_gb {
            let _ = write!(id, ":r{ram}");
        }
        if let Some(vcpus) = self.vcpus {
            let _ = write!(id, ":v{vcpus}");
        }
        if let Some(own) = &self.own {
            id.push_str(":x");
            escape(own, &mut id);
        }
        let _ = write!(id, ":p{}", self.price.micros());
        id
    }

    /// Reads an id.
    pub fn decode(id: &str) -> Result<Self, OfferKeyError> {
        let malformed = || OfferKeyError::Malformed(super::words::one_line(id, 200));
        let Some((version, rest)) = id.split_once(':') else { return Err(malformed()) };
        if version != "1" {
            let later = version.parse::<u32>().is_ok_and(|version| version > 1);
            return Err(if later { OfferKeyError::Newer } else { malformed() });
        }
        Self::decode_fields(rest).ok_or_else(malformed)?
    }

    fn decode_fields(rest: &str) -> Option<Result<Self, OfferKeyError>> {
        let mut parts = rest.split(':');
        let account = parts.next().filter(|account| account.contains('/'))?.parse().ok()?;
        let instance_type = unescape(parts.next()?)?;
        let gpu_count = parts.next()?.parse().ok()?;
        let zone = Some(unescape(parts.next()?)?).filter(|zone| !zone.is_empty());
        let (mut spot, mut disk, mut price) = (None, None, None);
        let (mut cuda, mut ram_gb, mut vcpus, mut own) = (None, None, None, None);
        for part in parts {
            let (field, value) = part.split_at_checked(1)?;
            match field {
                "s" | "o" if value.is_empty() => spot = Some(field == "s"),
                "d" => disk = Some(value.parse().ok()?),
                "c" => cuda = Some(value.parse().ok()?),
                "r" => ram_gb = Some(value.parse().ok()?),
                "v" => vcpus = Some(value.parse().ok()?),
                "x" => own = Some(unescape(value)?),
                "p" => price = Some(Usd::from_micros(value.parse().ok().filter(|micros| *micros >= 0)?)),
                // Dropping a field that we do not know could buy something else than what was shown.
                _ => return Some(Err(OfferKeyError::Newer)),
            }
        }
        let (spot, disk_gb, price) = (spot?, disk?, price?);
        Some(Ok(OfferKey {
            account,
            instance_type,
            gpu_count,
            zone,
            spot,
            disk_gb,
            cuda,
            ram_gb,
            vcpus,
            price,
            own,
        }))
    }
}

fn escape(text: &str, id: &mut String) {
    for byte in text.bytes() {
        match byte {
            b' ' => id.push('_'),
            b'.' | b'-' => id.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => id.push(char::from(byte)),
            _ => {
                let _ = write!(id, "/{byte:02X}");
            }
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'_' => b' ',
            b'/' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            b'.' | b'-' => byte,
            _ if byte.is_ascii_alphanumeric() => byte,
            _ => return None,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> OfferKey {
        OfferKey {
            account: "runpod/default".parse().unwrap(),
            instance_type: "NVIDIA GeForce RTX 4090 x1 community".to_owned(),
            gpu_count: 1,
            zone: Some("EU-RO-1".to_owned()),
            spot: false,
            disk_gb: 50,
            cuda: Some("12.9".parse().unwrap()),
            ram_gb: None,
            vcpus: None,
            price: Usd::from_micros(346_850),
            own: None,
        }
    }

    #[test]
    fn the_id_is_the_stored_format() {
        let id = "1:runpod/default:NVIDIA_GeForce_RTX_4090_x1_community:1:EU-RO-1:o:d50:c12.9:p346850";
        assert_eq!(key().encode(), id);
        assert_eq!(OfferKey::decode(id).unwrap(), key());
    }

    #[test]
    fn the_longest_id_fits() {
        let longest = OfferKey {
            account: AccountId::new(crate::model::account::CloudKind::Runpod, &"a".repeat(30)).unwrap(),
            instance_type: "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition x16 community".to_owned(),
            gpu_count: 16,
            zone: Some("SEA-SG-12".to_owned()),
            ram_gb: Some(2048),
            vcpus: Some(512),
            price: Usd::from_micros(123_456_789),
            disk_gb: 10_000,
            ..key()
        };
        assert!(longest.encode().len() <= 200, "{}", longest.encode().len());
    }

    #[test]
    fn what_is_no_id() {
        for bad in [
            "",
            "1",
            "dev",
            "1:runpod:x:1:z:o:d50:p1",
            "1:runpod/default:x:1:z:o:d50",
            "1:aws/x:x:1:z:o:d50:p1",
            "1:runpod/default:x y:1:z:o:d50:p1",
            "1:runpod/default:/F:1:z:o:d50:p1",
            "1:runpod/default:x:1:z:o:d50:p-1",
            "1:runpod/default:x:1:z:o::p1",
            "1:runpod/default:x:1:z:o:é:p1",
        ] {
            assert!(matches!(OfferKey::decode(bad), Err(OfferKeyError::Malformed(_))), "{bad}");
        }
        for newer in ["2:anything", "1:runpod/default:x:1:z:o:d50:p1:q7"] {
            assert_eq!(OfferKey::decode(newer), Err(OfferKeyError::Newer), "{newer}");
        }
    }

    proptest! {
        #[test]
        fn any_type_and_zone_round_trip(ty in "\\PC{0,30}", zone in "\\PC{1,20}", own in proptest::option::of("\\PC{0,10}"), micros in 0_i64..1_000_000_000) {
            let key = OfferKey { instance_type: ty, zone: Some(zone), own, price: Usd::from_micros(micros), ..key() };
            let id = key.encode();
            prop_assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/-".contains(&b)));
            prop_assert_eq!(OfferKey::decode(&id).unwrap(), key);
        }

        #[test]
        fn any_text_is_survived(text in "\\PC{0,100}") {
            let _ = OfferKey::decode(&text);
        }
    }
}
