//! Every table and key of the config file, declared once.

use std::time::Duration;

use super::accounts::CloudTable;
use super::read::{self, Table};
use crate::model::account::CloudKind;
use crate::model::mark::{Installation, Owner};
use crate::model::money::Usd;
use crate::model::secret::Secret;
use crate::model::want::{Cuda, Spot};

/// A key of the config file, for the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
}

macro_rules! table {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $key_doc:literal])+ $key:ident: $ty:ty = $read:ident,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[doc = $key_doc])+ pub $key: Option<$ty>,)+
        }

        impl $name {
            /// The keys of the table.
            pub const KEYS: &[Key] =
                &[$(Key { name: stringify!($key), doc: concat!($($key_doc),+) },)+];

            pub(super) fn read(table: &mut Table<'_>) -> Self {
                $name { $($key: table.get(stringify!($key), read::$read),)+ }.checked(table)
            }

            /// Returns this table with what it leaves open taken from `base`.
            pub fn over(self, base: Self) -> Self {
                $name { $($key: self.$key.or(base.$key),)+ }
            }
        }
    };
}

macro_rules! cloud_table {
    ($cloud:ident, secrets [$($secret:ident),*], credentials [$($credential:ident),+],
     $(#[doc = $doc:literal])+ $name:ident { $($body:tt)+ }) => {
        table! { $(#[doc = $doc])+ $name { $($body)+ } }

        impl $name {
            fn checked(self, _: &Table<'_>) -> Self {
                self
            }
        }

        impl CloudTable for $name {
            const CLOUD: CloudKind = CloudKind::$cloud;

            fn over(self, base: Self) -> Self {
                $name::over(self, base)
            }

            fn without_credentials(self) -> Self {
                $name { $($credential: None,)+ ..self }
            }

            fn has_secret(&self) -> bool {
                false $(|| self.$secret.is_some())*
            }

            fn endpoint(&self) -> Option<&String> {
                self.endpoint.as_ref()
            }
        }
    };
}

table! {
    /// `[defaults]`: what a command takes where a flag does not say otherwise. Texts are in the form of the flags and are
    /// read like them.
    Defaults {
        /// `--gpus`.
        gpus: Vec<String> = list,
        /// `--cpu-only`.
        cpu_only: bool = yes_or_no,
        /// `--cloud`, for `offers` and `provision` only.
        cloud: Vec<String> = list,
        /// `--region`.
        region: Vec<String> = list,
        /// `--zone`.
        zone: Vec<String> = list,
        /// `--instance-type`.
        instance_type: Vec<String> = list,
        /// `--spot`: true, false, "any" or "no".
        spot: Spot = spot,
        /// `--secure`.
        secure: bool = yes_or_no,
        /// `--disk`, in GB.
        disk: u32 = whole,
        /// `--ram`, in GB.
        ram: u32 = whole,
        /// `--vcpus`.
        vcpus: u32 = whole,
        /// `--vram`, in GB of one GPU.
        vram: u32 = whole,
        /// `--cuda`.
        cuda: Cuda = cuda,
        /// `--max-price`, in USD per hour.
        max_price: Usd = price,
        /// `--image`; a cloud's own `image` wins over it.
        image: String = text,
        /// `--port`.
        port: Vec<String> = ports,
        /// The default cluster: true or false; never insistence on one.
        k8s: bool = yes_or_no,
        /// `--no-k8s`: true is `k8s = false`.
        no_k8s: bool = yes_or_no,
        /// `--env`.
        env: Vec<Secret> = secrets,
        /// `--env-file`; a relative path lies in the config file's folder.
        env_file: Vec<String> = list,
        /// `--startup-script`; a relative path lies in the config file's folder.
        startup_script: String = text,
        /// `--queue`.
        queue: Duration = span,
        /// `--attempts`.
        attempts: u32 = whole,
        /// `--wait`.
        wait: String = text,
        /// `--ttl`.
        ttl: Duration = some_span,
        /// `--keep-failed`.
        keep_failed: bool = yes_or_no,
        /// A machine dearer than this many USD per hour is asked for.
        ask_above: Usd = price,
        /// Who machines are for; it stands in their marks.
        owner: Owner = owner,
        /// The installation id, in place of the one in the state directory.
        installation: Installation = installation,
    }
}

impl Defaults {
    fn checked(mut self, table: &Table<'_>) -> Self {
        if let Some(no) = self.no_k8s {
            if self.k8s == Some(no) {
                table.contradiction("no_k8s", "k8s");
            }
            self.k8s = Some(!no);
        }
        self
    }
}

table! {
    /// `[ssh]`.
    SshTable {
        /// `--ssh-key`; a relative path lies in the config file's folder.
        key: String = text,
        /// Whether `~/.ssh/config` gets the line that includes our file.
        manage_config: bool = yes_or_no,
    }
}

impl SshTable {
    fn checked(self, _: &Table<'_>) -> Self {
        self
    }
}

table! {
    /// `[wait]`.
    WaitTable {
        /// `--cloud-timeout`.
        cloud_timeout: Duration = some_span,
        /// Replaces every cloud's own pace of looks.
        poll: Duration = span,
        /// Replaces every cloud's own listing grace. A removal then puts up with silence for twice as long at most, a roll-back
        /// for ten times; otherwise they do for one and five minutes. With too many requests either puts up for five times
        /// as long as that; otherwise for ten minutes.
        grace: Duration = span,
        /// `--boot-timeout`; replaces every cloud's own boot budget.
        boot_timeout: Duration = some_span,
    }
}

impl WaitTable {
    fn checked(self, _: &Table<'_>) -> Self {
        self
    }
}

cloud_table! {
    Runpod, secrets [api_key], credentials [api_key],
    /// `[runpod]`.
    RunpodTable {
        /// The API key.
        api_key: Secret = secret,
        /// The image of machines at RunPod.
        image: String = text,
        /// Which tiers are asked: "secure", "community".
        tiers: Vec<String> = list,
        /// Whether the ssh keys of the RunPod account are let onto the machines too.
        account_keys: bool = yes_or_no,
        /// Another base URL.
        endpoint: String = text,
    }
}

cloud_table! {
    Vast, secrets [api_key], credentials [api_key],
    /// `[vast]`.
    VastTable {
        /// The API key.
        api_key: Secret = secret,
        /// The image of machines at Vast.
        image: String = text,
        /// The least reliability of a host, 0 to 1.
        min_reliability: f64 = share,
        /// Whether only verified hosts are taken.
        verified: bool = yes_or_no,
        /// Whether only hosts in data centres are taken.
        datacenter: bool = yes_or_no,
        /// Another base URL.
        endpoint: String = text,
    }
}

cloud_table! {
    Verda, secrets [client_secret], credentials [client_id, client_secret],
    /// `[verda]`.
    VerdaTable {
        /// The client id.
        client_id: String = text,
        /// The client secret.
        client_secret: Secret = secret,
        /// The port of sshd on machines at Verda.
        ssh_port: u16 = ssh_port,
        /// Another base URL.
        endpoint: String = text,
    }
}

cloud_table! {
    Gcp, secrets [], credentials [credentials],
    /// `[gcp]`.
    GcpTable {
        /// The credentials file; a relative path lies in the config file's folder.
        credentials: String = text,
        /// The project.
        project: String = text,
        /// The zones that are asked.
        zones: Vec<String> = list,
        /// The network of machines.
        network: String = text,
        /// The port of sshd on machines at Google.
        ssh_port: u16 = ssh_port,
        /// Another base URL.
        endpoint: String = text,
    }
}

cloud_table! {
    Nebius, secrets [], credentials [credentials, service_account, token_file],
    /// `[nebius]`.
    NebiusTable {
        /// The credentials file; a relative path lies in the config file's folder.
        credentials: String = text,
        /// The tenant.
        tenant: String = text,
        /// The projects that are asked.
        projects: Vec<String> = list,
        /// The service account that a federated token is exchanged for.
        service_account: String = text,
        /// The file with that token.
        token_file: String = text,
        /// The port of sshd on machines at Nebius.
        ssh_port: u16 = ssh_port,
        /// Another base URL.
        endpoint: String = text,
    }
}
