//! What is asked for.

use std::fmt;
use std::str::FromStr;

use super::gpu::GpuWant;
use super::money::Usd;
use super::place::RegionWant;

/// A CUDA version, `12.8`. Ordered by number, so `12.10` is above `12.9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cuda {
    /// The number before the point.
    pub major: u16,
    /// The number after it.
    pub minor: u16,
}

/// Why a text is no CUDA version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a CUDA version, such as 12.8 or 13")]
pub struct CudaError(String);

impl FromStr for Cuda {
    type Err = CudaError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
        let number = |digits: &str| {
            let plain = (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| digits.parse().ok()).flatten()
        };
        match (number(major), number(minor)) {
            (Some(major), Some(minor)) if major > 0 => Ok(Cuda { major, minor }),
            _ => Err(CudaError(text.to_owned())),
        }
    }
}

impl fmt::Display for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A cloud's exact instance type, `T[:COUNT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeWant {
    /// The type as the cloud spells it (RunPod: the GPU id).
    pub name: String,
    /// How many GPUs, for clouds whose types say none; none if it was left out.
    pub count: Option<u32>,
}

impl FromStr for TypeWant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, count) = match text.rsplit_once(':') {
            Some((name, count)) => match count.parse() {
                Ok(count @ 1..=1024) => (name, Some(count)),
                _ => return Err(format!("`{count}` in `{text}` is not a GPU count")),
            },
            None => (text, None),
        };
        if name.trim().is_empty() {
            return Err(format!("`{text}` names no instance type"));
        }
        Ok(TypeWant { name: name.to_owned(), count })
    }
}

/// What kind of machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any one of these GPUs will do.
    Gpus(Vec<GpuWant>),
    /// A machine without a GPU.
    CpuOnly,
    /// Any one of these exact types.
    Types(Vec<TypeWant>),
}

/// Spot or on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Spot {
    /// On demand only.
    #[default]
    No,
    /// Spot only.
    Only,
    /// Both.
    Any,
}

/// A port to open, `N[@CIDR]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortWant {
    /// The TCP port.
    pub port: u16,
    /// From where; everywhere if none.
    pub cidr: Option<String>,
}

impl FromStr for PortWant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (port, cidr) = match text.split_once('@') {
            Some((port, cidr)) => (port, Some(cidr)),
            None => (text, None),
        };
        let port = port.parse().ok().filter(|port| *port != 0);
        let port = port.ok_or_else(|| format!("`{text}` is not a port, 1 to 65535"))?;
        let Some(cidr) = cidr else { return Ok(PortWant { port, cidr: None }) };
        let (address, bits) = cidr.split_once('/').unwrap_or((cidr, ""));
        let address: std::net::IpAddr = address
            .parse()
            .map_err(|_| format!("`{cidr}` is not an address range such as 203.0.113.0/24"))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let fits = bits.is_empty() || bits.parse::<u8>().is_ok_and(|bits| bits <= most);
        if !fits {
            return Err(format!("`{cidr}` is not an address range such as 203.0.113.0/24"));
        }
        Ok(PortWant {
            port,
            cidr: Some(if bits.is_empty() { format!("{cidr}/{most}") } else { cidr.to_owned() }),
        })
    }
}

/// What is asked about a cluster on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Cluster {
    /// Set one up where that can be done; say where not.
    #[default]
    Default,
    /// Insist on one.
    Insist,
    /// None.
    Off,
}

/// The whole request for offers. What it says shapes the rows (disk, count, CUDA floor, image) and narrows them.
#[derive(Clone, Debug, PartialEq)]
pub struct Want {
    /// GPU, CPU-only or exact types.
    pub kind: Kind,
    /// Where; anywhere if empty.
    pub regions: Vec<RegionWant>,
    /// In which zones or data centres; any if empty.
    pub zones: Vec<String>,
    /// Spot, on demand or both.
    pub spot: Spot,
    /// Only data centres of the cloud or of partners that it vouches for.
    pub secure: bool,
    /// Disk in GB, as asked for; a cloud's own minimum raises it.
    pub disk_gb: u32,
    /// Whether the disk was asked for, rather than taken from the default.
    pub disk_given: bool,
    /// At least so much memory in GB, whole machine.
    pub ram_gb: Option<u32>,
    /// At least so many vCPUs, whole machine.
    pub vcpus: Option<u32>,
    /// At least so much memory per GPU in GB, nominal.
    pub vram_gb: Option<u32>,
    /// At least this CUDA on the machine.
    pub cuda: Option<Cuda>,
    /// At most this price per hour, whole machine, disk included.
    pub max_price: Option<Usd>,
    /// A container image in place of ours.
    pub image: Option<String>,
    /// Ports to open to the world.
    pub ports: Vec<PortWant>,
    /// A cluster on the machine.
    pub cluster: Cluster,
}

impl Want {
    /// Returns a request for `kind` with every other wish at its default and `disk_gb` of disk.
    pub fn new(kind: Kind, disk_gb: u32) -> Self {
        Want {
            kind,
            regions: Vec::new(),
            zones: Vec::new(),
            spot: Spot::No,
            secure: false,
            disk_gb,
            disk_given: false,
            ram_gb: None,
            vcpus: None,
            vram_gb: None,
            cuda: None,
            max_price: None,
            image: None,
            ports: Vec::new(),
            cluster: Cluster::Default,
        }
    }

    /// Whether a machine without a GPU is asked for.
    pub fn is_cpu_only(&self) -> bool {
        self.kind == Kind::CpuOnly
    }

    /// Returns the different GPU counts asked for, ascending (RunPod and Vast are asked once for each).
    pub fn gpu_counts(&self) -> Vec<u32> {
        let mut counts: Vec<u32> = match &self.kind {
            Kind::Gpus(gpus) => gpus.iter().map(|gpu| gpu.count).collect(),
            Kind::Types(types) => types.iter().map(|ty| ty.count.unwrap_or(1)).collect(),
            Kind::CpuOnly => Vec::new(),
        };
        counts.sort_unstable();
        counts.dedup();
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuda_is_ordered_by_number() {
        let cuda = |text: &str| text.parse::<Cuda>().unwrap();
        assert!(cuda("12.10") > cuda("12.9") && cuda("13") > cuda("12.10"));
        assert_eq!(cuda("13").to_string(), "13.0");
        for bad in ["", "x", "12.", ".8", "12.8.1", "0.1", "-1", "12,8", "99999"] {
            assert!(bad.parse::<Cuda>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ports_and_types() {
        assert_eq!("8080@203.0.113.7".parse::<PortWant>().unwrap().cidr.as_deref(), Some("203.0.113.7/32"));
        for bad in ["0", "65536", "x", "80@", "80@10.0.0.0/33", "80@host"] {
            assert!(bad.parse::<PortWant>().is_err(), "{bad}");
        }
        let ty: TypeWant = "NVIDIA  A30:2".parse().unwrap();
        assert_eq!((ty.name.as_str(), ty.count), ("NVIDIA  A30", Some(2)));
        for bad in ["", ":1", "x:0", "x:y"] {
            assert!(bad.parse::<TypeWant>().is_err(), "{bad}");
        }
    }
}
