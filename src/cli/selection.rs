//! SELECTION: the flags that say which machine is wanted, shared by `offers` and `provision`.

use std::time::Duration;

use clap::Args;

use crate::accounts::Account;
use crate::cli::failure::usage;
use crate::cli::lists::split;
use crate::model::account::AccountFilter;
use crate::model::duration;
use crate::model::money::Usd;
use crate::model::want::{Cluster, Cuda, Kind, Spot, Want};
use crate::plan::refuse::Soft;
use crate::provision::failure::Failure;
use crate::state::config::Config;
use crate::state::switches::Switch;

/// Which machine is wanted.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Selection")]
pub struct Selection {
    /// GPUs, any one of which will do: `RTX4090:1`, `H100:8`, `any:2`; the count is exact and 1 if left out
    #[arg(long, alias = "gpu", value_name = "NAME[:COUNT]")]
    pub gpus: Vec<String>,
    /// A machine without a GPU
    #[arg(long, conflicts_with_all = ["gpus", "instance_type"])]
    pub cpu_only: bool,
    /// Clouds and account ids to ask: `runpod`, `vast/lab-b`
    #[arg(long, value_name = "LIST")]
    pub cloud: Vec<String>,
    /// Continents, ISO country codes or the clouds' own region names
    #[arg(long, value_name = "REGION")]
    pub region: Vec<String>,
    /// Zones or data centres
    #[arg(long, value_name = "ZONE")]
    pub zone: Vec<String>,
    /// The cloud's exact type (RunPod: the exact GPU id), with `:COUNT` where the type has none
    #[arg(long, value_name = "TYPE", conflicts_with = "gpus")]
    pub instance_type: Vec<String>,
    /// Spot offers only; `any` for both, `no` for on demand only
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "only")]
    pub spot: Option<String>,
    /// Only data centres of the cloud or of partners that it vouches for
    #[arg(long)]
    pub secure: bool,
    /// Disk that is asked for and priced, in GB [default: 50]
    #[arg(long, value_name = "GB", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub disk: Option<u32>,
    /// At least so much memory, in GB
    #[arg(long, value_name = "GB", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub ram: Option<u32>,
    /// At least so many vCPUs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub vcpus: Option<u32>,
    /// At least so much memory per GPU, in GB
    #[arg(long, value_name = "GB", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub vram: Option<u32>,
    /// At least this CUDA on the machine; it also picks the image where the image is ours
    #[arg(long, value_name = "X[.Y]")]
    pub cuda: Option<Cuda>,
    /// At most this price per hour in USD, for the whole machine with its disk
    #[arg(long, value_name = "USD")]
    pub max_price: Option<Usd>,
    /// A container image in place of ours
    #[arg(long, value_name = "REF")]
    pub image: Option<String>,
    /// A port to open to the world, or to a range
    #[arg(long, value_name = "N[@CIDR]")]
    pub port: Vec<String>,
    /// Insist on a Kubernetes cluster on the machine
    #[arg(long, conflicts_with = "no_k8s")]
    pub k8s: bool,
    /// No Kubernetes cluster on the machine
    #[arg(long)]
    pub no_k8s: bool,
    /// How long any one account may take to answer
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_some)]
    pub cloud_timeout: Option<Duration>,
}

/// A selection with the defaults of the configuration in it.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The request.
    pub want: Want,
    /// Which wishes come from the defaults.
    pub soft: Soft,
    /// The accounts to ask; all if empty.
    pub accounts: Vec<AccountFilter>,
    /// Whether they come from the defaults: those that are not there are left out then.
    pub soft_accounts: bool,
    /// Whether no kind of machine was named at all.
    pub unspecific: bool,
    /// How many GPUs the one offer has that is to be taken; none if any offer will do.
    pub gpu_count: Option<u32>,
}

impl Chosen {
    /// Whether the account is switched on for such machines.
    pub fn serves(&self, account: &Account) -> bool {
        let switch = Switch { gpu: account.gpu, cpu: account.cpu };
        match self.gpu_count {
            Some(count) => switch.admits(count),
            None => switch.serves(&self.want),
        }
    }
}

impl Selection {
    /// Reads the flags, with the defaults of the configuration where a flag does not say otherwise.
    pub fn choose(&self, config: &Config) -> Result<Chosen, Failure> {
        let defaults = &config.defaults;
        let kind_given = !self.gpus.is_empty() || self.cpu_only || !self.instance_type.is_empty();
        self.check_lists()?;
        let from = |flags: &[String], default: &Option<Vec<String>>| {
            if flags.is_empty() { split(&default.clone().unwrap_or_default()) } else { split(flags) }
        };
        let (gpus, types, cpu_only) = if kind_given {
            (split(&self.gpus), split(&self.instance_type), self.cpu_only)
        } else {
            (
                split(&defaults.gpus.clone().unwrap_or_default()),
                split(&defaults.instance_type.clone().unwrap_or_default()),
                defaults.cpu_only.unwrap_or(false),
            )
        };
        let (kind, unspecific) = if cpu_only {
            (Kind::CpuOnly, false)
        } else if !types.is_empty() {
            (Kind::Types(parse_all("--instance-type", &types)?), false)
        } else if !gpus.is_empty() {
            (Kind::Gpus(parse_all("--gpus", &gpus)?), false)
        } else {
            (Kind::Gpus(parse_all("--gpus", &["any:1".to_owned()])?), true)
        };

        let disk = self.disk.or(defaults.disk);
        let mut want = Want::new(kind, disk.unwrap_or(50));
        want.disk_given = disk.is_some();
        want.regions = parse_all("--region", &from(&self.region, &defaults.region))?;
        want.zones = from(&self.zone, &defaults.zone);
        want.spot = match self.spot.as_deref() {
            Some(word) => spot(word)?,
            None => defaults.spot.unwrap_or_default(),
        };
        want.secure = self.secure || defaults.secure.unwrap_or(false);
        want.ram_gb = self.ram.or(defaults.ram);
        want.vcpus = self.vcpus.or(defaults.vcpus);
        want.vram_gb = self.vram.or(defaults.vram);
        want.cuda = self.cuda.or(defaults.cuda);
        want.max_price = self.max_price.or(defaults.max_price);
        // A default image goes to the accounts as a setting of theirs (`accounts`): each cloud's own `image` wins over it.
        want.image = self.image.clone();
        want.ports = parse_all("--port", &from(&self.port, &defaults.port))?;
        want.cluster = match (self.k8s, self.no_k8s, defaults.k8s) {
            (true, ..) => Cluster::Insist,
            (_, true, _) | (_, _, Some(false)) => Cluster::Off,
            _ => Cluster::Default,
        };
        if let Some(image) = &want.image {
            check_image(image)?;
        }
        let accounts = from(&self.cloud, &defaults.cloud);
        Ok(Chosen {
            want,
            soft: Soft { spot: self.spot.is_none(), cpu_only: !kind_given, ports: self.port.is_empty() },
            accounts: parse_all("--cloud", &accounts)?,
            soft_accounts: self.cloud.is_empty(),
            unspecific,
            gpu_count: None,
        })
    }

    /// Refuses a flag that was given nothing (`--cloud "$UNSET"`): taken for no flag at all it would widen the request.
    fn check_lists(&self) -> Result<(), Failure> {
        let lists = [
            ("--gpus", &self.gpus),
            ("--cloud", &self.cloud),
            ("--region", &self.region),
            ("--zone", &self.zone),
            ("--instance-type", &self.instance_type),
            ("--port", &self.port),
        ];
        match lists.iter().find(|(_, words)| !words.is_empty() && split(words).is_empty()) {
            Some((flag, _)) => Err(usage(format!("{flag}: nothing is given"))),
            None => Ok(()),
        }
    }

    /// Returns the first selection flag that `--offer` does not go with.
    pub fn beside_offer(&self) -> Option<&'static str> {
        [
            ("--gpus", !self.gpus.is_empty()),
            ("--cpu-only", self.cpu_only),
            ("--cloud", !self.cloud.is_empty()),
            ("--region", !self.region.is_empty()),
            ("--zone", !self.zone.is_empty()),
            ("--instance-type", !self.instance_type.is_empty()),
            ("--spot", self.spot.is_some()),
            ("--secure", self.secure),
            ("--disk", self.disk.is_some()),
            ("--ram", self.ram.is_some()),
            ("--vcpus", self.vcpus.is_some()),
            ("--vram", self.vram.is_some()),
            ("--cuda", self.cuda.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }
}

/// Reads every word of a list; the error names the flag.
pub fn parse_all<T: std::str::FromStr<Err: std::fmt::Display>>(
    flag: &str,
    words: &[String],
) -> Result<Vec<T>, Failure> {
    words.iter().map(|word| word.parse().map_err(|error| usage(format!("{flag}: {error}")))).collect()
}

fn spot(word: &str) -> Result<Spot, Failure> {
    match word {
        "only" | "true" | "yes" => Ok(Spot::Only),
        "any" => Ok(Spot::Any),
        "no" | "false" => Ok(Spot::No),
        other => Err(usage(format!("--spot: `{other}` is not one of `any`, `no`, or nothing"))),
    }
}

fn check_image(image: &str) -> Result<(), Failure> {
    let fits = (1..=512).contains(&image.len()) && image.bytes().all(|b| b.is_ascii_graphic());
    if fits {
        Ok(())
    } else {
        Err(usage("--image: not an image reference, such as `runpod/base:1.4.1-cuda1281-ubuntu2204`"))
    }
}
