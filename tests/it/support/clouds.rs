//! Accounts at clouds other than RunPod, whose only account every world begins with.

use std::os::unix::fs::PermissionsExt;

use super::World;

impl World {
    /// Takes the account at RunPod away.
    pub fn without_runpod(&mut self) {
        self.unset("RUNPOD_API_KEY");
        self.unset("GPUPROV_RUNPOD_ENDPOINT");
    }

    /// Adds the first account at Vast.
    pub fn with_vast(&mut self) {
        self.set("GPUPROV_VAST_ENDPOINT", self.sandbox.vast().endpoint());
        self.set("VAST_API_KEY", self.sandbox.vast().key().to_owned());
    }

    /// Adds the first account at Verda, whose machines' sshd is not always at port 22 here: that goes into the config file. No
    /// clusters: what they are about is in `k8s`.
    pub fn with_verda(&mut self) {
        let verda = self.sandbox.verda();
        let (endpoint, port) = (verda.endpoint(), self.sandbox.vm_ssh_port());
        let (id, secret) = (verda.client_id().to_owned(), verda.client_secret().to_owned());
        self.config(&format!("[defaults]\nk8s = false\n[verda]\nssh_port = {port}\n"));
        self.set("GPUPROV_VERDA_ENDPOINT", endpoint);
        self.set("VERDA_CLIENT_ID", id);
        self.set("VERDA_CLIENT_SECRET", secret);
    }

    /// Adds the first account at Nebius by its token; the port of its machines' sshd goes into the config file.
    pub fn with_nebius(&mut self) {
        let nebius = self.sandbox.nebius();
        let (endpoint, port) = (nebius.endpoint(), self.sandbox.vm_ssh_port());
        let (token, tenant) = (nebius.token().to_owned(), nebius.tenant().to_owned());
        self.config(&format!("[defaults]\nk8s = false\n[nebius]\nssh_port = {port}\n"));
        self.set("GPUPROV_NEBIUS_ENDPOINT", endpoint);
        self.set("NEBIUS_IAM_TOKEN", token);
        self.set("NEBIUS_TENANT_ID", tenant);
    }

    /// Adds the first account at Google Cloud by a key file, which is not below HOME. The config file then has the port of the
    /// machines' sshd for all VM clouds, so that this one is added last.
    pub fn with_gcp(&mut self) {
        let gcp = self.sandbox.gcp();
        let (endpoint, key, port) = (gcp.endpoint(), gcp.key_file(), self.sandbox.vm_ssh_port());
        let tables = ["verda", "nebius", "gcp"].map(|cloud| format!("[{cloud}]\nssh_port = {port}\n"));
        self.config(&format!("[defaults]\nk8s = false\n{}", tables.concat()));
        let path = self.aside.path().join("gcp-key.json");
        std::fs::write(&path, key).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        self.set("GPUPROV_GCP_ENDPOINT", endpoint);
        self.set("GOOGLE_APPLICATION_CREDENTIALS", path.into_os_string());
    }

    /// Everything that must be in no output and in no file.
    pub fn secrets(&self) -> [&str; 5] {
        [
            self.sandbox.runpod_key(),
            self.sandbox.vast().key(),
            self.sandbox.verda().client_secret(),
            self.sandbox.nebius().token(),
            self.sandbox.gcp().secret(),
        ]
    }
}
