// RunPod's official MCP server against the sandbox: list, create, wait, get, logs, list, delete, and every answer checked.
// usage: node conformance.mjs GPUPROV

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";

const LIMIT_MS = 90_000;
const folder = path.dirname(new URL(import.meta.url).pathname);
const home = mkdtempSync(path.join(folder, "home-"));
const children = [];
let checks = 0;

function check(value, what) {
  assert.ok(value, what);
  checks += 1;
}

function start(program, words, env) {
  const child = spawn(program, words, {
    env: { PATH: process.env.PATH, HOME: home, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.on("error", (error) => stop(new Error(`${program}: ${error.message}`)));
  children.push(child);
  return child;
}

function stop(error) {
  if (error) console.error(`conformance: runpod: FAILED: ${error.stack ?? error}`);
  for (const child of children) child.kill("SIGTERM");
  // The sandbox takes its own folder away before it ends.
  setTimeout(() => {
    rmSync(home, { recursive: true, force: true });
    process.exit(error ? 1 : 0);
  }, 500);
}

// Reads what `sandbox serve` prints: variables, and the address of its control path.
function served(child) {
  return new Promise((resolve, reject) => {
    const variables = {};
    createInterface({ input: child.stdout }).on("line", (line) => {
      const variable = /^export (\w+)='(.*)'$/.exec(line);
      if (variable) variables[variable[1]] = variable[2];
      const control = /^# control path: (\S+)$/.exec(line);
      if (control) resolve({ variables, control: control[1] });
    });
    child.on("exit", (code) => reject(new Error(`the sandbox ended with ${code}`)));
  });
}

// Speaks JSON-RPC, one message a line.
class Client {
  #child;
  #waiting = new Map();
  #next = 1;

  constructor(child) {
    this.#child = child;
    createInterface({ input: child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    });
  }

  send(message) {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  ask(method, params) {
    const id = this.#next++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.send({ id, method, params });
    });
  }

  // Calls a tool and returns its answer as JSON where it is JSON.
  async call(name, words = {}) {
    const answer = await this.ask("tools/call", { name, arguments: words });
    assert.ok(!answer.error, `${name}: ${JSON.stringify(answer.error)}`);
    const text = answer.result.content.map((part) => part.text ?? "").join("\n");
    assert.ok(!answer.result.isError, `${name}: ${text}`);
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
}

async function run() {
  const { variables, control } = await served(start(process.argv[2], ["sandbox", "serve"], {}));
  const endpoint = variables.GPUPROV_RUNPOD_ENDPOINT;
  check(endpoint?.startsWith("http://127.0.0.1:"), "the sandbox names its endpoint");
  const server = path.join(folder, "node_modules/@runpod/mcp-server/dist/stdio.mjs");
  const client = new Client(
    start(process.execPath, [server], {
      RUNPOD_API_KEY: variables.RUNPOD_API_KEY,
      RUNPOD_API_BASE_URL: endpoint,
    }),
  );
  const hello = await client.ask("initialize", {
    protocolVersion: "2025-03-26",
    capabilities: {},
    clientInfo: { name: "gpuprov-conformance", version: "1" },
  });
  check(hello.result?.serverInfo, "the official server answers");
  client.send({ method: "notifications/initialized" });

  for (const cloud of ["SECURE", "COMMUNITY"]) {
    const answer = await client.call("list-gpu-types", { include: ["AVAILABILITY"], product: ["POD"], cloud });
    const types = answer.gpus ?? answer;
    const card = types.find((type) => type.id === "NVIDIA GeForce RTX 4090");
    check(card && card.memory === 24 && card.price[cloud.toLowerCase()] > 0, `${cloud}: a priced RTX 4090`);
  }
  const places = await client.call("list-data-centers");
  check((places.dataCenters ?? places).some((place) => place.id === "EU-RO-1"), "a data center");
  const keys = await client.call("get-ssh-keys");
  check(Array.isArray(keys.keys ?? keys), "the account's keys");

  const before = (await client.call("list-pods")).pods;
  check(before.length === 1, "one foreign pod from the start");
  const made = await client.call("create-pod", {
    body: {
      name: "conformance",
      image: "runpod/base:1.4.1-cuda1290-ubuntu2204",
      cloud: "SECURE",
      gpu: { id: "NVIDIA GeForce RTX 4090", count: 1, minCudaVersion: "12.9" },
      dataCenterIds: ["EU-RO-1"],
      disk: 20,
      ports: ["22/tcp"],
      env: { PUBLIC_KEY: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFhIrlEzqXAXRVYbMvxDuAAQ0iI0u0k1jAwGSh5dTz0B a" },
    },
  });
  check(/^[a-z0-9]{10,}$/.test(made.id), "a pod with an id");

  let pod = made;
  for (let look = 0; look < 60 && !(pod.status === "RUNNING" && pod.ssh?.direct); look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    pod = await client.call("get-pod", { id: made.id });
  }
  check(pod.status === "RUNNING", "it runs");
  check(pod.ssh.direct.username === "root" && pod.ssh.direct.port > 0, "it has an address for ssh");
  check(pod.gpu.count === 1 && pod.dataCenterId === "EU-RO-1", "it is what was asked for");

  const logs = await client.call("stream-pod-logs", {
    podId: made.id,
    source: "container",
    tail: 100,
    maxWaitMs: 2000,
  });
  check(JSON.stringify(logs).includes("Pod is ready to use"), "its log says that it is ready");

  let pods = [];
  for (let look = 0; look < 20 && pods.length < 2; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    pods = (await client.call("list-pods")).pods;
  }
  check(pods.some((each) => each.id === made.id), "the list has it after the listing lag");

  await client.call("delete-pod", { id: made.id });
  for (let look = 0; look < 20 && pods.length > 1; look += 1) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    pods = (await client.call("list-pods")).pods.filter((each) => each.status !== "TERMINATED");
  }
  check(pods.length === 1 && pods[0].id === before[0].id, "only the foreign pod is left in the list");

  const ledger = await (await fetch(`${control}/ledger`)).json();
  const all = Array.isArray(ledger) ? ledger : Object.values(ledger)[0];
  // The other clouds have a machine of somebody else's too.
  const entries = all.filter((entry) => entry.cloud === "runpod");
  check(entries.find((entry) => entry.id === made.id)?.alive === false, "the ledger says it is gone");
  check(entries.filter((entry) => entry.alive).length === 1, "the ledger holds nothing else");
  const rejected = await (await fetch(`${control}/requests?rejected=1`)).json();
  const list = Array.isArray(rejected) ? rejected : Object.values(rejected)[0];
  assert.deepEqual(list, [], "the sandbox took the official client for a wrong one");
  checks += 1;
}

setTimeout(() => stop(new Error(`not done after ${LIMIT_MS} ms`)), LIMIT_MS).unref();
run().then(
  () => {
    console.log(`conformance: runpod: ${checks} checks passed with the official client`);
    stop();
  },
  (error) => stop(error),
);
