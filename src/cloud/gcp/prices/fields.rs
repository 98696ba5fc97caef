//! Reading a catalogue's CSV: columns by name, and only figures that can be such.

use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::model::money::Usd;

/// No catalogue of either kind has this many bytes.
pub(super) const MOST_BYTES: u64 = 48 * 1024 * 1024;

/// No machine costs this much an hour.
const MOST_DOLLARS: f64 = 10_000.0;

/// One row in so many may be unreadable; with more the file is not what it says.
const ODD_ROWS: usize = 10;

/// A catalogue's rows under a header that has all columns that are needed.
pub(super) struct Rows<'a> {
    reader: Reader<&'a [u8]>,
    columns: Vec<usize>,
}

/// The fields of one row, in the order in which the columns were asked for.
pub(super) struct Row<'r> {
    record: &'r ByteRecord,
    columns: &'r [usize],
}

impl<'a> Rows<'a> {
    /// Reads the header. Columns may stand in any order, and there may be more of them.
    pub(super) fn new(text: &'a [u8], names: &[&str]) -> Result<Self, String> {
        if text.len() as u64 > MOST_BYTES {
            return Err("it is too large".to_owned());
        }
        // A last row without an end may have been cut within a price.
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut reader = ReaderBuilder::new().from_reader(&text[..end]);
        let header = reader.byte_headers().map_err(|_| "its header cannot be read".to_owned())?;
        let header: Vec<&[u8]> = header.iter().map(<[u8]>::trim_ascii).collect();
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let mut at = header.iter().enumerate().filter(|(_, cell)| **cell == name.as_bytes());
            match (at.next(), at.next()) {
                (Some((column, _)), None) => columns.push(column),
                _ => return Err(format!("its header has not one column `{name}`")),
            }
        }
        Ok(Rows { reader, columns })
    }

    /// Gives each row to `take`, and fails when too many are no rows.
    pub(super) fn each(mut self, mut take: impl FnMut(Row<'_>)) -> Result<(), String> {
        let (mut rows, mut odd) = (0_usize, 0_usize);
        let mut record = ByteRecord::new();
        loop {
            rows += 1;
            match self.reader.read_byte_record(&mut record) {
                Ok(true) => take(Row { record: &record, columns: &self.columns }),
                Ok(false) => break,
                Err(_) => odd += 1,
            }
        }
        if odd * ODD_ROWS > rows { Err("its rows do not fit its header".to_owned()) } else { Ok(()) }
    }
}

impl<'r> Row<'r> {
    /// Returns a field without blanks around it; empty if it is no text.
    pub(super) fn text(&self, at: usize) -> &'r str {
        let bytes = self.columns.get(at).and_then(|column| self.record.get(*column)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default().trim()
    }

    /// Returns a figure, `4` or `4.0`; none if the field is empty or no figure.
    pub(super) fn number(&self, at: usize) -> Option<f64> {
        let text = self.text(at);
        let plain = text.len() <= 32 && text.bytes().all(|byte| b"0123456789.eE-".contains(&byte));
        text.parse::<f64>().ok().filter(|number| plain && number.is_finite() && *number >= 0.0)
    }

    /// Returns a count, 0 for an empty field; none if it is no whole number.
    pub(super) fn count(&self, at: usize) -> Option<u32> {
        if self.text(at).is_empty() {
            return Some(0);
        }
        self.number(at)
            .filter(|number| number.fract() == 0.0 && *number <= 1024.0)
            .map(|number| number as u32)
    }

    /// Returns a price; none if there is none, or if it is none that any machine has. 0 is a price here.
    pub(super) fn price(&self, at: usize) -> Option<Usd> {
        self.number(at).filter(|price| *price <= MOST_DOLLARS).and_then(Usd::from_f64)
    }
}

/// Whether two figures for memory or vCPUs are the same machine's.
pub(super) fn is_close(told: Option<f64>, known: f64) -> bool {
    told.is_some_and(|told| (told - known).abs() <= known * 0.02)
}
