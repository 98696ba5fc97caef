//! Names in a request that nobody knows: slips of the hand, which an empty list would hide.

use crate::model::gpu::{Gpu, GpuModel, nearest};
use crate::model::place::{RegionWant, nearest_region, nearest_zone, zone_is_known};
use crate::model::want::{Kind as WantKind, TypeWant, Want};
use crate::provision::failure::{Failure, Kind};
use crate::provision::gather::Gathered;

/// Returns the failure for a GPU, type, region or zone that neither our tables nor any answer knows. None where nobody
/// answered: nothing can be said about names then.
pub fn unknown_name(want: &Want, gathered: &Gathered) -> Option<Failure> {
    if gathered.answered == 0 {
        return None;
    }
    unknown_gpu(want, gathered)
        .or_else(|| unknown_type(want, gathered))
        .or_else(|| unknown_region(want, gathered))
        .or_else(|| unknown_zone(want, gathered))
}

fn slip(flag: &str, name: &str, near: &[String]) -> Failure {
    let failure = Failure::new(Kind::Usage, format!("{flag}: nobody knows `{name}`"));
    if near.is_empty() { failure } else { failure.hint(format!("nearest: {}", near.join(", "))) }
}

fn unknown_gpu(want: &Want, gathered: &Gathered) -> Option<Failure> {
    let WantKind::Gpus(gpus) = &want.kind else { return None };
    let heard = |model: &GpuModel| {
        let same = |name: &String| model.matches(&Gpu::identify(name, None)) || name == model.as_asked();
        gathered.known_gpus.iter().any(same)
    };
    let unknown = gpus.iter().find(|gpu| !gpu.model.is_known() && !heard(&gpu.model))?;
    let asked = unknown.model.as_asked();
    Some(slip("--gpus", asked, &nearest(asked, &gathered.known_gpus)))
}

fn unknown_type(want: &Want, gathered: &Gathered) -> Option<Failure> {
    let (WantKind::Types(types), Some(known)) = (&want.kind, &gathered.known_types) else { return None };
    let heard = |ty: &&TypeWant| known.iter().any(|known| fold(known) == fold(&ty.name));
    let unknown = types.iter().find(|ty| !heard(ty))?;
    Some(slip("--instance-type", &unknown.name, &nearest(&unknown.name, known)))
}

fn unknown_region(want: &Want, gathered: &Gathered) -> Option<Failure> {
    for region in want.regions.iter().filter(|region| !region.is_known()) {
        let name = region.to_string();
        if zone_is_known(&name) {
            let failure = Failure::new(Kind::Usage, format!("--region: `{name}` is a zone"));
            return Some(failure.hint(format!("ask for it with `--zone {name}`")));
        }
        if !has(&gathered.known_places, &name) {
            return Some(slip("--region", &name, &nearest_region(&name, &gathered.known_places)));
        }
    }
    None
}

fn unknown_zone(want: &Want, gathered: &Gathered) -> Option<Failure> {
    for zone in want.zones.iter().filter(|zone| !zone_is_known(zone)) {
        let as_region = zone.parse::<RegionWant>().is_ok_and(|region| region.is_known());
        if as_region {
            let failure = Failure::new(Kind::Usage, format!("--zone: `{zone}` is a region"));
            return Some(failure.hint(format!("ask for it with `--region {zone}`")));
        }
        if !has(&gathered.known_places, zone) {
            return Some(slip("--zone", zone, &nearest_zone(zone, &gathered.known_places)));
        }
    }
    None
}

fn has(known: &[String], name: &str) -> bool {
    known.iter().any(|known| fold(known) == fold(name))
}

/// The comparison form of a name: shells and people fold blanks.
fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered() -> Gathered {
        Gathered {
            answered: 1,
            known_gpus: vec!["RTX4090".to_owned(), "NVIDIA R200 NVL144".to_owned()],
            known_types: Some(vec!["NVIDIA  A30".to_owned()]),
            known_places: vec!["EU-RO-1".to_owned(), "europe".to_owned(), "XX-NEW-1".to_owned()],
            ..Gathered::default()
        }
    }

    fn message(want: &Want) -> Option<String> {
        unknown_name(want, &gathered()).map(|failure| failure.message)
    }

    fn gpus(names: &[&str]) -> Want {
        Want::new(WantKind::Gpus(names.iter().map(|name| name.parse().unwrap()).collect()), 50)
    }

    #[test]
    fn gpus_and_types() {
        for known in ["RTX4090", "T4", "any:2", "nvidia r200  nvl144"] {
            assert_eq!(message(&gpus(&[known])), None, "{known}");
        }
        assert_eq!(message(&gpus(&["RTX4090", "FOO9"])).unwrap(), "--gpus: nobody knows `FOO9`");
        let types = |name: &str| Want::new(WantKind::Types(vec![name.parse().unwrap()]), 50);
        assert_eq!(message(&types("nvidia a30:2")), None);
        assert_eq!(message(&types("NVIDIA A31")).unwrap(), "--instance-type: nobody knows `NVIDIA A31`");
        let silent = Gathered { known_types: None, ..gathered() };
        assert!(unknown_name(&types("NVIDIA A31"), &silent).is_none());
        assert!(unknown_name(&gpus(&["FOO9"]), &Gathered::default()).is_none());
    }

    #[test]
    fn places() {
        let region = |name: &str| Want { regions: vec![name.parse().unwrap()], ..gpus(&["any"]) };
        let zone = |name: &str| Want { zones: vec![name.to_owned()], ..gpus(&["any"]) };
        for want in [region("EU"), region("CA"), region("JP"), zone("eu-ro-1"), zone("xx-new-1")] {
            assert_eq!(message(&want), None, "{want:?}");
        }
        assert_eq!(message(&region("ZZ")).unwrap(), "--region: nobody knows `ZZ`");
        assert_eq!(message(&region("EU-RO-1")).unwrap(), "--region: `EU-RO-1` is a zone");
        assert_eq!(message(&zone("europe")).unwrap(), "--zone: `europe` is a region");
        assert_eq!(message(&zone("EU-RO-7")).unwrap(), "--zone: nobody knows `EU-RO-7`");
    }
}
