//! Which offers answer the request.

use crate::cloud::Capabilities;
use crate::model::offer::Offer;
use crate::model::want::{Cuda, Kind, Spot, TypeWant, Want};

/// Part of RAM and VRAM that is forgiven: clouds count in GB and GiB, and keep some back.
const FORGIVEN: f64 = 0.04;

/// The first wish that an offer does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Miss {
    /// Another GPU, count or type.
    Kind,
    /// Another region, or a place that the cloud does not tell.
    Region,
    /// Another zone.
    Zone,
    /// Spot where on demand was asked for, or the other way round.
    Spot,
    /// Not in a data centre that the cloud vouches for.
    Secure,
    /// Too little memory.
    Ram,
    /// Memory that the cloud does not tell and cannot be asked for.
    RamUntold,
    /// Too few vCPUs.
    Vcpus,
    /// vCPUs that the cloud does not tell and cannot be asked for.
    VcpusUntold,
    /// Too little GPU memory.
    Vram,
    /// Too old a CUDA.
    Cuda,
    /// No usable price.
    Unpriced,
    /// Above the price limit. Checked last: what misses by price alone is the nearest.
    Price,
}

impl Miss {
    /// Returns how the user names the wish.
    pub fn flag(self) -> &'static str {
        match self {
            Miss::Kind => "--gpus",
            Miss::Region => "--region",
            Miss::Zone => "--zone",
            Miss::Spot => "--spot",
            Miss::Secure => "--secure",
            Miss::Ram | Miss::RamUntold => "--ram",
            Miss::Vcpus | Miss::VcpusUntold => "--vcpus",
            Miss::Vram => "--vram",
            Miss::Cuda => "--cuda",
            Miss::Unpriced => "a usable price",
            Miss::Price => "--max-price",
        }
    }
}

/// Returns the first wish that the offer does not meet; none if it meets all.
pub fn miss(offer: &Offer, want: &Want, capabilities: &Capabilities) -> Option<Miss> {
    let priced =
        offer.price_per_hour.is_positive() || (capabilities.free && offer.price_per_hour.micros() == 0);
    if !priced {
        return Some(Miss::Unpriced);
    }
    if !is_kind(offer, &want.kind) {
        return Some(Miss::Kind);
    }
    let place = offer.place();
    if !want.regions.is_empty() && !want.regions.iter().any(|region| region.matches(&place)) {
        return Some(Miss::Region);
    }
    let in_zone = |zone: &String| place.in_zone(zone) || is_host(offer, zone);
    if !want.zones.is_empty() && !want.zones.iter().any(in_zone) {
        return Some(Miss::Zone);
    }
    match want.spot {
        Spot::No if offer.spot => return Some(Miss::Spot),
        Spot::Only if !offer.spot => return Some(Miss::Spot),
        _ => {}
    }
    if want.secure && !offer.secure {
        return Some(Miss::Secure);
    }
    let carried = capabilities.carries_ram_and_vcpus;
    match (want.ram_gb, offer.ram_gb) {
        (Some(least), Some(has)) if has < f64::from(least) * (1.0 - FORGIVEN) => return Some(Miss::Ram),
        (Some(_), None) if !carried => return Some(Miss::RamUntold),
        _ => {}
    }
    match (want.vcpus, offer.vcpus) {
        (Some(least), Some(has)) if has < f64::from(least) => return Some(Miss::Vcpus),
        (Some(_), None) if !carried => return Some(Miss::VcpusUntold),
        _ => {}
    }
    if let Some(least) = want.vram_gb
        && !offer.vram_gb.is_some_and(|has| has >= f64::from(least) * (1.0 - FORGIVEN))
    {
        return Some(Miss::Vram);
    }
    // An untold CUDA is let through: where the image is not ours, nobody can tell.
    if let (Some(least), Some(has)) = (want.cuda, &offer.cuda)
        && has.parse::<Cuda>().is_ok_and(|has| has < least)
    {
        return Some(Miss::Cuda);
    }
    if want.max_price.is_some_and(|most| offer.price_per_hour > most) {
        return Some(Miss::Price);
    }
    None
}

/// Whether `zone` names the very machine of the offer (`machine:37228`).
fn is_host(offer: &Offer, zone: &str) -> bool {
    offer.host.as_deref().is_some_and(|host| host.eq_ignore_ascii_case(zone.trim()))
}

fn is_kind(offer: &Offer, kind: &Kind) -> bool {
    match kind {
        Kind::CpuOnly => offer.gpu_count == 0,
        // Counts first: reading a GPU's name is most of the work here.
        Kind::Gpus(gpus) => {
            gpus.iter().any(|gpu| gpu.count == offer.gpu_count)
                && offer.card().is_some_and(|card| {
                    gpus.iter().any(|gpu| gpu.count == offer.gpu_count && gpu.model.matches(&card))
                })
        }
        Kind::Types(types) => types.iter().any(|ty| is_type(offer, ty)),
    }
}

fn is_type(offer: &Offer, ty: &TypeWant) -> bool {
    if offer.instance_type == ty.name {
        return ty.count.is_none_or(|count| count == offer.gpu_count);
    }
    // Where the type has no count of its own (RunPod), it is the GPU's exact id; ids with two blanks exist, and shells and
    // people fold them.
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    offer.gpu_raw.as_deref().is_some_and(|raw| fold(raw).eq_ignore_ascii_case(&fold(&ty.name)))
        && ty.count.unwrap_or(1) == offer.gpu_count
}

#[cfg(test)]
pub(crate) mod samples {
    use std::time::Duration;

    use crate::cloud::{Capabilities, Pace, Support};
    use crate::model::account::CloudKind;
    use crate::model::money::Usd;
    use crate::model::offer::{Offer, PriceParts};

    /// A container cloud like RunPod.
    pub(crate) fn capabilities() -> Capabilities {
        Capabilities {
            cloud: CloudKind::Runpod,
            spot: Support::No("no spot"),
            cpu_only: Support::No("GPUs only"),
            image: Support::Yes,
            ports: Support::No("random ports"),
            port_cidr: Support::No("random ports"),
            cluster: Support::No("no systemd"),
            container: true,
            free: false,
            min_disk_gb: 1,
            max_disk_gb: Some(10_000),
            reserves_env: |name| name.starts_with("OWN_"),
            bills_stopped: false,
            carries_ram_and_vcpus: true,
            boot_budget: Duration::from_secs(900),
            own_image_extra: Duration::ZERO,
            poll: Pace {
                first: Duration::from_secs(2),
                first_for: Duration::from_secs(30),
                then: Duration::from_secs(5),
            },
            listing_lag: Duration::from_secs(120),
            key_grace: Duration::from_secs(60),
            host_key_grace: Duration::ZERO,
        }
    }

    /// One RTX 4090 in `zone` for `micros` micro-dollars per hour.
    pub(crate) fn offer(zone: &str, micros: i64) -> Offer {
        let price = Usd::from_micros(micros);
        Offer {
            id: format!("1:runpod/default:x:1:{zone}:o:d50:p{micros}"),
            account: "runpod/default".parse().unwrap(),
            cloud: CloudKind::Runpod,
            region: Some("europe".to_owned()),
            country: Some("RO".parse().unwrap()),
            zone: Some(zone.to_owned()),
            host: None,
            instance_type: "NVIDIA GeForce RTX 4090 x1 community".to_owned(),
            gpu: Some("RTX4090".to_owned()),
            gpu_raw: Some("NVIDIA GeForce RTX 4090".to_owned()),
            gpu_count: 1,
            vram_gb: Some(24.0),
            vcpus: None,
            ram_gb: None,
            disk_gb: 50,
            spot: false,
            secure: false,
            price_per_hour: price,
            price_parts: PriceParts { compute: price, disk: Usd::ZERO, address: None },
            price_estimated: false,
            price_as_of: None,
            traffic_per_gb: None,
            continent: Some("europe".parse().unwrap()),
            cuda: Some("12.9".to_owned()),
            stock: None,
            sandbox: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::money::Usd;

    fn want(gpus: &str) -> Want {
        Want::new(Kind::Gpus(vec![gpus.parse().unwrap()]), 50)
    }

    fn miss_of(offer: &Offer, want: &Want) -> Option<Miss> {
        miss(offer, want, &samples::capabilities())
    }

    #[test]
    fn each_wish_is_looked_at() {
        let offer = samples::offer("EU-RO-1", 346_850);
        let base = want("RTX4090:1");
        let cases = [
            (base.clone(), None),
            (want("RTX4090:2"), Some(Miss::Kind)),
            (want("H100:1"), Some(Miss::Kind)),
            (want("any:1"), None),
            (Want { kind: Kind::CpuOnly, ..base.clone() }, Some(Miss::Kind)),
            (Want { regions: vec!["asia".parse().unwrap()], ..base.clone() }, Some(Miss::Region)),
            (Want { regions: vec!["asia".parse().unwrap(), "RO".parse().unwrap()], ..base.clone() }, None),
            (Want { zones: vec!["eu-ro-1".to_owned()], ..base.clone() }, None),
            (Want { zones: vec!["EU-RO-2".to_owned()], ..base.clone() }, Some(Miss::Zone)),
            (Want { spot: Spot::Only, ..base.clone() }, Some(Miss::Spot)),
            (Want { spot: Spot::Any, ..base.clone() }, None),
            (Want { secure: true, ..base.clone() }, Some(Miss::Secure)),
            (Want { ram_gb: Some(500), ..base.clone() }, None),
            (Want { vram_gb: Some(25), ..base.clone() }, None),
            (Want { vram_gb: Some(26), ..base.clone() }, Some(Miss::Vram)),
            (Want { cuda: Some("13".parse().unwrap()), ..base.clone() }, Some(Miss::Cuda)),
            (Want { max_price: Some(Usd::from_micros(346_849)), ..base.clone() }, Some(Miss::Price)),
            (Want { max_price: Some(Usd::from_micros(346_850)), ..base.clone() }, None),
        ];
        for (want, expected) in cases {
            assert_eq!(miss_of(&offer, &want), expected, "{want:?}");
        }
    }

    #[test]
    fn a_place_that_is_not_told_fails_a_region() {
        let mut offer = samples::offer("x", 1);
        (offer.region, offer.country, offer.continent) = (None, None, None);
        let want = Want { regions: vec!["europe".parse().unwrap()], ..want("RTX4090") };
        assert_eq!(miss_of(&offer, &want), Some(Miss::Region));
    }

    #[test]
    fn an_exact_type_is_the_type_or_the_gpu_id_with_its_count() {
        let mut offer = samples::offer("x", 1);
        offer.gpu_raw = Some("NVIDIA  RTX A4500".to_owned());
        let types = |text: &str| Want::new(Kind::Types(vec![text.parse().unwrap()]), 50);
        for good in [
            "NVIDIA  RTX A4500",
            "NVIDIA RTX A4500:1",
            "nvidia rtx a4500",
            "NVIDIA GeForce RTX 4090 x1 community",
        ] {
            assert_eq!(miss_of(&offer, &types(good)), None, "{good}");
        }
        for other in ["NVIDIA RTX A4500:2", "NVIDIA RTX"] {
            assert_eq!(miss_of(&offer, &types(other)), Some(Miss::Kind), "{other}");
        }
    }

    #[test]
    fn ram_is_forgiven_four_percent_and_untold_ram_only_where_it_can_be_asked_for() {
        let mut offer = samples::offer("x", 1);
        offer.ram_gb = Some(61.5);
        let want = Want { ram_gb: Some(64), ..want("RTX4090") };
        assert_eq!(miss_of(&offer, &want), None);
        offer.ram_gb = Some(61.0);
        assert_eq!(miss_of(&offer, &want), Some(Miss::Ram));
        offer.ram_gb = None;
        let mut capabilities = samples::capabilities();
        capabilities.carries_ram_and_vcpus = false;
        assert_eq!(miss(&offer, &want, &capabilities), Some(Miss::RamUntold));
    }

    #[test]
    fn prices_that_are_none() {
        for micros in [0, -1] {
            assert_eq!(miss_of(&samples::offer("x", micros), &want("RTX4090")), Some(Miss::Unpriced));
        }
    }
}
