//! Answers in the form of the API document, for tests, and an account to give them to.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::credentials::Credentials;
use super::{Settings, Verda};
use crate::cloud::{Cloud, Journal, Setup};
use crate::http::canned::{Asked, Canned, Reply, json as answer};
use crate::http::{Client, ClientOptions};
use crate::model::handle::{Handle, Resource};
use crate::model::mark::Mark;
use crate::model::offer::Offer;
use crate::model::spec::MachineSpec;
use crate::model::want::{Cluster, Kind, Want};

pub(super) const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOURS gpuprov";
pub(super) const SECRET: &str = "s3cret-of-the-project";
pub(super) const ID: &str = "0dc16ed0-f7fb-4eec-a5e6-004e082bb1f4";
pub(super) const KEY_ID: &str = "39479972-f06d-4a94-8027-75a0b42dcf6b";
pub(super) const VOLUME_ID: &str = "95cec4c3-af69-42eb-a790-fcacebfdfcea";
pub(super) const WHOLE_NAME: &str = "gpuprov-lab-00ff00ff00ff00ff";

/// An account at `base`.
pub(super) fn cloud(base: &str) -> Verda {
    cloud_with(base, |_, _| {})
}

/// An account with other settings.
pub(super) fn cloud_with(base: &str, change: impl FnOnce(&mut Setup, &mut Settings)) -> Verda {
    let mut setup = Setup {
        account: "verda/default".parse().unwrap(),
        endpoint: base.to_owned(),
        loopback: true,
        timeout: Duration::from_secs(2),
        secret_mark: "0123456789abcdef".to_owned(),
        cache: None,
        grace: None,
        poll: None,
        boot_timeout: None,
    };
    let credentials = Credentials::new("6a51jsgnISg6JOyE7wYZh", SECRET).unwrap();
    let mut settings = Settings { credentials, ssh_port: 22 };
    change(&mut setup, &mut settings);
    let options = ClientOptions { backoff: Duration::from_millis(1), ..ClientOptions::default() };
    Verda::new(setup, settings, Client::new(options))
}

/// A request for these GPUs, comma separated.
pub(super) fn want(gpus: &str) -> Want {
    Want::new(Kind::Gpus(gpus.split(',').map(|gpu| gpu.parse().unwrap()).collect()), 100)
}

/// A request for a machine without a GPU.
pub(super) fn want_cpu() -> Want {
    Want::new(Kind::CpuOnly, 100)
}

/// A request for this exact type.
pub(super) fn want_type(name: &str) -> Want {
    Want::new(Kind::Types(vec![name.parse().unwrap()]), 100)
}

pub(super) fn mark() -> Mark {
    Mark::from_text("v1:lab:default:dev:00ff00ff00ff00ff:1796000000:ana").unwrap()
}

/// The handle of the machine with everything that was noted.
pub(super) fn handle() -> Handle {
    Handle { side: vec![super::marks::key(KEY_ID)], ..super::marks::machine(ID, &mark()) }
}

pub(super) fn spec() -> MachineSpec {
    MachineSpec {
        name: "dev".parse().unwrap(),
        public_key: KEY.to_owned(),
        image: None,
        env: Vec::new(),
        ports: Vec::new(),
        cluster: Cluster::Default,
    }
}

/// Remembers what was made; fails from the given entry on.
#[derive(Debug)]
pub(super) struct Notebook {
    pub(super) made: Mutex<Vec<Resource>>,
    pub(super) room: usize,
}

impl Default for Notebook {
    fn default() -> Self {
        Notebook { made: Mutex::default(), room: usize::MAX }
    }
}

impl Journal for Notebook {
    fn made(&self, resource: &Resource) -> std::io::Result<()> {
        let mut made = self.made.lock().unwrap();
        made.push(resource.clone());
        if made.len() > self.room { Err(std::io::Error::other("disk full")) } else { Ok(()) }
    }
}

impl Notebook {
    pub(super) fn ids(&self) -> Vec<String> {
        self.made.lock().unwrap().iter().map(|resource| resource.id.clone()).collect()
    }
}

/// `GET /v1/instance-types`.
pub(super) fn types() -> Value {
    let row = |name: &str, gpu: &str, model: &str, figures: [u32; 4], prices: [&str; 2], images: &[&str]| {
        let [count, vram, cores, ram] = figures;
        json!({
            "best_for": [], "cpu": {"description": format!("{cores} CPU"), "number_of_cores": cores},
            "currency": "usd", "deploy_warning": null, "description": "Dedicated Hardware Instance",
            "display_name": null, "dynamic_price": null, "max_dynamic_price": prices[0],
            "gpu": {"description": gpu, "number_of_gpus": count},
            "gpu_memory": {"description": "", "size_in_gigabytes": vram},
            "id": "60006000-6000-47af-8ff0-600060006001", "instance_type": name, "manufacturer": "NVIDIA",
            "memory": {"description": "", "size_in_gigabytes": ram}, "model": model, "name": gpu, "p2p": null,
            "price_per_hour": prices[0], "spot_price": prices[1], "storage": {"description": "dynamic"},
            "supported_os": images,
        })
    };
    let pro = &[
        "24.04.cuda13.2.docker",
        "24.04.cuda13.0",
        "26.04.cuda13.2",
        "ubuntu-24.04-cuda-13.0-open",
        "24.04.base",
        "24.04.cuda13.0.verda-gpureset",
    ][..];
    let a100 = &["ubuntu-24.04-cuda-12.8-open-docker", "24.04.cuda12.9.docker"][..];
    let plain = &["24.04.base", "26.04.base", "ubuntu-24.04"][..];
    json!([
        row(
            "1RTXPRO6000.30V",
            "1x RTX PRO 6000 96GB",
            "RTX PRO 6000",
            [1, 96, 30, 90],
            ["1.964", "0.982"],
            pro
        ),
        row(
            "1RTXPRO6000.30V.CC",
            "1x RTX PRO 6000 96GB",
            "RTX PRO 6000",
            [1, 96, 30, 90],
            ["0.003", "0.002"],
            pro
        ),
        row("8A100.176V", "8x A100 SXM4 80GB", "A100", [8, 640, 176, 960], ["10.32", "5.16"], a100),
        row("1A100.22V", "1x A100 SXM4 80GB", "A100", [1, 80, 22, 120], ["1.29", "0.4515"], a100),
        row("1A100.40S.22V", "1x A100 SXM4 40GB", "A100", [1, 40, 22, 120], ["0.72", "0.2524"], a100),
        row(
            "1V100.6V",
            "1x Tesla V100 16GB",
            "Tesla V100",
            [1, 16, 6, 23],
            ["0.1381", "0.0595"],
            &["jupyter"]
        ),
        row("2B300.60V", "2x B300 SXM6 268GB", "B300", [2, 525, 60, 550], ["13.98", "4.894"], pro),
        row("1GB300.36V", "1x GB300 288GB", "GB300", [1, 288, 36, 200], ["7.1", "3"], pro),
        row("1H100.80S.32V", "1x H100 SXM5 80GB", "H100", [1, 80, 32, 185], ["free", ""], pro),
        row("1ODD.1V", "1x Acme Turbo 12GB", "Turbo", [1, 12, 4, 16], ["0.5", "0.4"], &[]),
        row("CPU.4V.16G", "", "CPU Node", [0, 0, 4, 16], ["0.0279", "0.0098"], plain),
        row("CPU.8V.32G", "", "CPU Node", [0, 0, 8, 32], ["0.0558", "0.0196"], plain),
    ])
}

/// `GET /v1/instance-availability`.
pub(super) fn stock(spot: bool) -> Value {
    match spot {
        true => json!([
            {"location_code": "FIN-01", "availabilities": ["CPU.4V.16G", "1V100.6V"]},
            {"location_code": "FIN-02", "availabilities": []},
            {"location_code": "FIN-03", "availabilities": ["1RTXPRO6000.30V", "8A100.176V", "CPU.4V.16G"]},
        ]),
        false => json!([
            {"location_code": "FIN-01", "availabilities": [
                "1RTXPRO6000.30V", "1RTXPRO6000.30V.CC", "1A100.22V", "1A100.40S.22V", "1H100.80S.32V", "1V100.6V",
                "CPU.8V.32G", "1ODD.1V", "1UNHEARDOF.1V"]},
            {"location_code": "SWE-09", "availabilities": ["1RTXPRO6000.30V", "2B300.60V", "1GB300.36V", "CPU.4V.16G"]},
        ]),
    }
}

/// `GET /v1/locations`.
pub(super) fn locations() -> Value {
    let location = |code: &str| json!({"code": code, "name": "Finland", "country_code": "FI"});
    json!([location("FIN-01"), location("FIN-02"), location("FIN-03")])
}

/// `GET /v1/volume-types`.
pub(super) fn volume_types() -> Value {
    let row = |ty: &str, price: f64| {
        json!({
            "type": ty, "price": {"price_per_month_per_gb": price, "cps_per_gb": 7.6e-8, "currency": "usd"},
            "is_shared_fs": false, "burst_bandwidth": 2500, "continuous_bandwidth": 2000,
            "internal_network_speed": 50, "iops": "100k", "throughput_gbps": 4,
        })
    };
    json!([row("HDD", 0.05), row("NVMe", 0.2)])
}

/// `GET /v1/images`.
pub(super) fn images() -> Value {
    let row = |name: &str, is_default: bool| {
        json!({
            "id": "2404f580-1300-1111-82b3-f199fb9b701b", "image_type": name, "name": name, "is_default": is_default,
            "is_cluster": false, "details": [], "category": "ubuntu",
        })
    };
    json!([
        row("26.04.cuda13.2", false),
        row("24.04.cuda13.2.docker", false),
        row("24.04.cuda13.0", false),
        row("ubuntu-24.04-cuda-13.0-open-docker", true),
        row("24.04.base", false),
    ])
}

pub(super) fn tags() -> Value {
    let tag = |(key, value): (&str, String)| json!({"id": "tag_0aB1cD2eF3gH4iJ5kL6mN7", "key": key, "value": value});
    mark().labels().into_iter().map(tag).collect()
}

/// A machine just made.
pub(super) fn starting() -> Value {
    json!({
        "id": ID, "ip": null, "status": "provisioning", "created_at": "2026-11-30T09:10:26.654Z",
        "created_by_user_id": "7dfc2631-0158-4f74-93f6-6b46dcb90fef",
        "cpu": {"description": "30 CPU", "number_of_cores": 30},
        "gpu": {"description": "1x RTX PRO 6000 96GB", "number_of_gpus": 1},
        "gpu_memory": {"description": "96GB GPU RAM", "size_in_gigabytes": 96},
        "memory": {"description": "90GB RAM", "size_in_gigabytes": 90}, "storage": {"description": "dynamic"},
        "hostname": "dev", "description": "gpuprov-dev-00ff00", "tags": tags(), "location": "FIN-03",
        "price_per_hour": 0.982, "is_spot": true, "instance_type": "1RTXPRO6000.30V", "image": "24.04.cuda13.2.docker",
        "os_name": "Ubuntu 24.04 + CUDA 13.2 + Docker", "startup_script_id": null, "ssh_key_ids": [KEY_ID],
        "os_volume_id": null, "jupyter_token": "", "contract": "SPOT", "pricing": "FIXED_PRICE", "volume_ids": [],
    })
}

/// A machine that can be logged in to.
pub(super) fn ready() -> Value {
    changed(
        starting(),
        json!({"ip": "203.0.113.10", "status": "running", "os_volume_id": VOLUME_ID, "volume_ids": [VOLUME_ID]}),
    )
}

/// The OS volume.
pub(super) fn volume() -> Value {
    json!({
        "id": VOLUME_ID, "instance_id": null, "instances": [], "name": WHOLE_NAME,
        "created_at": "2026-11-30T09:10:27.001Z", "status": "detached", "size": 100, "is_os_volume": true,
        "target": null, "type": "NVMe", "location": "FIN-03", "ssh_key_ids": [KEY_ID], "pseudo_path": null,
        "create_directory_command": null, "mount_command": null, "filesystem_to_fstab_command": null,
        "contract": "PAY_AS_YOU_GO", "base_hourly_cost": 0.027_397_260_273_972_6, "monthly_price": 20,
        "currency": "usd", "long_term": null, "tags": tags(),
    })
}

/// The OS volume in the trash.
pub(super) fn trashed() -> Value {
    let more = json!({"status": "deleted", "deleted_at": "2026-11-30T10:00:00.000Z", "is_permanently_deleted": false});
    changed(volume(), more)
}

pub(super) fn key_row(id: &str, name: &str) -> Value {
    json!({"id": id, "name": name, "key": KEY, "fingerprint": null, "created_by_user_id": null})
}

/// An event of the journal.
pub(super) fn event(action: &str, more: Value) -> Value {
    changed(
        json!({
            "id": "instance-log-123", "object_id": ID, "object_type": "compute", "action_code": action,
            "actor_id": null, "project_id": "9f138172-0000-4000-8000-000000000000",
            "timestamp": "2026-11-30T12:00:00.000Z", "location_code": "FIN-03",
        }),
        more,
    )
}

pub(super) fn changed(mut value: Value, changes: Value) -> Value {
    for (name, change) in changes.as_object().unwrap() {
        value[name] = change.clone();
    }
    value
}

pub(super) fn problem(status: u16, code: &str, message: &str) -> Reply {
    answer(status, json!({"code": code, "message": message}).to_string())
}

pub(super) fn no_machine() -> Reply {
    problem(404, "not_found", "Invalid instance id")
}

pub(super) fn good(value: &Value) -> Reply {
    answer(200, value.to_string())
}

/// An answer in bare text, as ids come.
pub(super) fn text(status: u16, body: &str) -> Reply {
    Reply::Answer(status, "content-type: text/plain\r\n".to_owned(), body.to_owned())
}

/// Answers as Verda would with nothing in the project.
pub(super) fn shop(asked: &Asked) -> Reply {
    let line = asked.line.as_str();
    let public = ["GET /v1/instance-types", "GET /v1/volume-types", "POST /v1/oauth2/token"];
    let is_public = public.iter().any(|path| line.starts_with(path));
    if !is_public && !asked.header("authorization").is_some_and(|token| token.starts_with("Bearer eyJ")) {
        return problem(401, "unauthorized_request", "Access token is missing or expired");
    }
    let one = |path: &str| {
        line.strip_prefix(path).map(|rest| rest.split('?').next().unwrap_or_default().to_owned())
    };
    if let Some(name) = one("GET /v1/instance-availability/") {
        let stock = stock(line.contains("is_spot=true"));
        let there = stock.as_array().unwrap().iter().any(|row| {
            line.contains(&format!("location_code={}", row["location_code"].as_str().unwrap()))
                && row["availabilities"].as_array().unwrap().iter().any(|ty| *ty == *name)
        });
        return good(&json!(there));
    }
    match line.split('?').next().unwrap_or_default() {
        "POST /v1/oauth2/token" => good(&json!({
            "access_token": "eyJhbGciOi.eyJzdWIi.c2ln", "token_type": "Bearer", "expires_in": 3600,
            "refresh_token": "eyJ", "scope": "cloud-api-v1",
        })),
        "GET /v1/instance-types" => good(&types()),
        "GET /v1/volume-types" => good(&volume_types()),
        "GET /v1/instance-availability" => good(&stock(line.contains("is_spot=true"))),
        "GET /v1/locations" => good(&locations()),
        "GET /v1/images" => good(&images()),
        "POST /v1/ssh-keys" => text(201, KEY_ID),
        "POST /v1/instances" => text(202, ID),
        "PUT /v1/instances" => {
            answer(202, json!([{"instanceId": ID, "action": "delete", "status": "success"}]).to_string())
        }
        "GET /v1/instances"
        | "GET /v1/volumes"
        | "GET /v1/volumes/trash"
        | "GET /v1/ssh-keys"
        | "GET /v1/journal" => good(&json!([])),
        path if path.starts_with("GET /v1/journal/") => good(&json!([])),
        path if path.starts_with("DELETE /v1/volumes/") => text(202, ""),
        path if path.starts_with("DELETE /v1/ssh-keys/") => text(200, ""),
        path if path.starts_with("GET /v1/instances/") => no_machine(),
        path if path.starts_with("GET /v1/volumes/") => problem(404, "not_found", "Invalid volume id"),
        _ => problem(404, "not_found", &format!("Cannot {line}")),
    }
}

/// A server that answers lines that begin like one of `special` from its replies in turn, the last one again and again, and
/// everything else like [`shop`].
pub(super) async fn server(special: Vec<(&'static str, Vec<Reply>)>) -> Canned {
    let counts: Mutex<HashMap<&'static str, usize>> = Mutex::default();
    Canned::start(move |asked, _| {
        let fits = special
            .iter()
            .filter(|(start, _)| asked.line == *start || asked.line.starts_with(&format!("{start}?")));
        let Some((start, replies)) = fits.max_by_key(|(start, _)| start.len()) else { return shop(asked) };
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(*start).or_default();
        *count += 1;
        replies[(*count - 1).min(replies.len() - 1)].clone()
    })
    .await
}

/// The offers of [`shop`] for this request.
pub(super) async fn offers(want: &Want) -> Vec<Offer> {
    let server = Canned::start(|asked, _| shop(asked)).await;
    cloud(&server.base).offers(want).await.unwrap().offers
}

/// The cheapest of them.
pub(super) async fn cheapest(want: &Want) -> Offer {
    offers(want).await.into_iter().min_by(Offer::order).unwrap()
}

/// An offer for a spot machine with a GPU.
pub(super) async fn spot_offer() -> Offer {
    cheapest(&Want { spot: crate::model::want::Spot::Only, ..want("RTXPRO6000") }).await
}
