//! The two public price catalogues, which are not Google's: `catalog.zip` of gpuhunt and `vms.csv` of SkyPilot.
//!
//! They need no credentials. Layouts: <https://github.com/dstackai/gpuhunt> (`_internal/catalog.py`) and
//! <https://github.com/skypilot-org/skypilot> (`sky/catalog/data_fetchers/fetch_gcp.py`). Prices in `catalog/gcp-vms.csv` are a
//! copy of 2026 for the usual zones, with its wrong on-demand rows for A100-80GB, H100 and H200, some of them below their own spot price;
//! those of n2d, c3d and c3-standard are estimates.
//! `catalog/gcp-gpuhunt.csv` is made from it with list prices in their place, has no H200 at all, and two rows of a reservation
//! product. Both have machines that are not ours to sell, and TPUs.

use std::collections::HashMap;
use std::io::{self, Write};

use axum::body::Body;
use serde::{Deserialize, Serialize};

use crate::sandbox::faults::FaultKind;
use crate::sandbox::server::{Answer, Payload};

const GPUHUNT: &str = include_str!("../catalog/gcp-gpuhunt.csv");
const SKYPILOT: &str = include_str!("../catalog/gcp-vms.csv");

/// One of the catalogues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcpSource {
    /// `/prices/gpuhunt/catalog.zip`.
    Gpuhunt,
    /// `/prices/skypilot/vms.csv`.
    Skypilot,
}

/// How a catalogue answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcpPrices {
    /// As it should.
    #[default]
    Fine,
    /// 503.
    Down,
    /// 404.
    Missing,
    /// A page for people, with status 200.
    Html,
    /// Half of the rows, in good form.
    Half,
    /// A file that stops in the middle.
    Torn,
    /// Columns of other names.
    WrongHeader,
    /// The header and no rows.
    Empty,
}

/// What a machine costs.
#[derive(Debug)]
pub(super) struct Prices(HashMap<(String, String, u32, bool), f64>);

#[derive(Debug, Deserialize)]
struct HuntRow {
    instance_name: String,
    location: String,
    price: f64,
    gpu_count: u32,
    spot: String,
    flags: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SkyRow {
    instance_type: String,
    availability_zone: String,
    price: Option<f64>,
    spot_price: Option<f64>,
}

impl Prices {
    /// Reads the catalogues.
    pub(super) fn load() -> io::Result<Prices> {
        let mut all = HashMap::new();
        // Hosts without GPUs are in the second one only.
        for row in csv::Reader::from_reader(SKYPILOT.as_bytes()).deserialize() {
            let row: SkyRow = row.map_err(io::Error::other)?;
            for (price, spot) in [(row.price, false), (row.spot_price, true)] {
                if let Some(price) = price.filter(|_| !row.instance_type.is_empty()) {
                    all.insert((row.instance_type.clone(), row.availability_zone.clone(), 0, spot), price);
                }
            }
        }
        for row in csv::Reader::from_reader(GPUHUNT.as_bytes()).deserialize() {
            let row: HuntRow = row.map_err(io::Error::other)?;
            if row.flags.is_empty() || row.flags == "gcp-a4" {
                all.insert((row.instance_name, row.location, row.gpu_count, row.spot == "True"), row.price);
            }
        }
        Ok(Prices(all))
    }

    /// US dollars per hour of a machine type in a zone; `attached` is the number of GPUs that are not built in. Zero where
    /// nobody knows.
    pub(super) fn of(&self, shape: &str, zone: &str, attached: Option<u32>, spot: bool) -> f64 {
        let counts = match attached {
            Some(count) => vec![count],
            None => vec![1, 2, 4, 8, 16, 0],
        };
        // n1 rows are there once for each number of T4; without any the host alone counts.
        let counts = if shape.starts_with("n1-") && attached.is_none() { vec![0] } else { counts };
        let find = |count: u32| self.0.get(&(shape.to_owned(), zone.to_owned(), count, spot)).copied();
        counts.into_iter().find_map(find).unwrap_or(0.0)
    }
}

/// The text of a catalogue in this state, prices changed as faults say; nothing for one that is down.
fn text(source: GcpSource, how: GcpPrices, faults: &[FaultKind]) -> String {
    let whole = match source {
        GcpSource::Gpuhunt => GPUHUNT,
        GcpSource::Skypilot => SKYPILOT,
    };
    let (header, rows) = whole.split_once('\n').unwrap_or((whole, ""));
    let header = match how {
        GcpPrices::WrongHeader => header.replace("price", "cost").replace("Price", "Cost"),
        _ => header.to_owned(),
    };
    let factor: f64 = faults
        .iter()
        .map(|fault| if let FaultKind::PriceFactor { factor } = fault { *factor } else { 1.0 })
        .product();
    let stale = faults.contains(&FaultKind::StaleOffer);
    let kept = match how {
        GcpPrices::Half => rows.lines().count() / 2,
        GcpPrices::Empty => 0,
        _ if stale => 0,
        _ => usize::MAX,
    };
    let columns: &[usize] = if source == GcpSource::Gpuhunt { &[2] } else { &[8, 9] };
    let mut text = header + "\n";
    for row in rows.lines().take(kept) {
        if (factor - 1.0).abs() < f64::EPSILON {
            text.push_str(row);
        } else {
            text.push_str(&scaled(row, columns, factor));
        }
        text.push('\n');
    }
    text
}

/// A row with other prices. No field before a price has a comma in it but `GpuInfo`, which has none either.
fn scaled(row: &str, columns: &[usize], factor: f64) -> String {
    let fields = row.split(',').enumerate().map(|(index, field)| match field.parse::<f64>() {
        Ok(price) if columns.contains(&index) => format!("{:.6}", price * factor),
        _ => field.to_owned(),
    });
    fields.collect::<Vec<_>>().join(",")
}

/// Answers a call for a catalogue.
pub(super) fn answer(source: GcpSource, how: GcpPrices, faults: &[FaultKind]) -> Answer {
    match how {
        GcpPrices::Down => return Answer::text(503, "text/plain", "Service Unavailable"),
        GcpPrices::Missing => return Answer::text(404, "text/plain", "404: Not Found"),
        GcpPrices::Html => {
            return Answer::text(200, "text/html", "<!DOCTYPE html><html><body>Please sign in</body></html>");
        }
        _ => {}
    }
    let text = text(source, how, faults);
    let bytes = match source {
        GcpSource::Skypilot => Ok(text.into_bytes()),
        GcpSource::Gpuhunt => zipped(&text),
    };
    let Ok(mut bytes) = bytes else { return Answer::text(500, "text/plain", "the sandbox cannot zip") };
    if how == GcpPrices::Torn {
        bytes.truncate(bytes.len() / 2);
    }
    let kind = if source == GcpSource::Gpuhunt { "application/zip" } else { "text/plain; charset=utf-8" };
    Answer {
        status: 200,
        headers: Vec::new(),
        body: Payload::Stream(kind, Body::from(bytes)),
        rejected: None,
    }
}

fn zipped(text: &str) -> io::Result<Vec<u8>> {
    let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("gcp.csv", options).map_err(io::Error::other)?;
    zip.write_all(text.as_bytes())?;
    Ok(zip.finish().map_err(io::Error::other)?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogues_hang_together() {
        let prices = Prices::load().unwrap();
        let near = |left: f64, right: f64| assert!((left - right).abs() < 1e-4, "{left} {right}");
        near(prices.of("g2-standard-4", "us-central1-a", None, false), 0.70683);
        near(prices.of("a2-highgpu-1g", "us-west1-b", None, true), 1.80385);
        near(prices.of("n1-standard-8", "europe-west1-b", Some(1), false), 0.768_014);
        near(prices.of("n2-standard-8", "us-east4-a", None, false), 0.437_504);
        near(prices.of("n1-standard-4", "us-central1-a", None, false), 0.19);
        let whole = text(GcpSource::Skypilot, GcpPrices::Fine, &[]);
        assert_eq!(whole, SKYPILOT);
        let half = text(GcpSource::Skypilot, GcpPrices::Half, &[]);
        assert_eq!(half.lines().count() - 1, (whole.lines().count() - 1) / 2);
        let double = text(GcpSource::Gpuhunt, GcpPrices::Fine, &[FaultKind::PriceFactor { factor: 2.0 }]);
        assert!(double.lines().nth(1).unwrap().starts_with("g2-standard-4,us-central1-a,1.413660,4,"));
        assert!(zipped(&whole).unwrap().starts_with(b"PK"));
    }
}
