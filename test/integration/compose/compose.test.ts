import { describe, expect, it } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { indexerRole, ledgerRole } from "../../../ledger/roles.js";
import { KIT_CONFIG_FILES, loadKitConfig } from "../../../cli/home/kit-config.js";
import { NODE_ENVIRONMENT, NODE_FLAGS } from "../../../cli/home/network/kit-nodes.js";
import { ROLE_NAMES } from "../../../cli/home/role-homes.js";
import { createProgram } from "../../../cli/program/program.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../ledger/policy/policy.js";
import { treasuryRoundHoldsMs } from "../../../withdrawal-worker/config.js";
import { WatchedRounds } from "../../../withdrawal-worker/treasury/watched-rounds.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { type ConfigFile, environmentName, loadConfig } from "../../../runtime/config/config.js";

/** `treasury.scan-interval-ms` at most. */
const LONGEST_SCAN_INTERVAL_MS = 600_000;

const root = new URL("../../../", import.meta.url).pathname;

const condition = z.object({ condition: z.string() });
const service = z.object({
  image: z.string(),
  command: z.array(z.string()).optional(),
  user: z.string(),
  read_only: z.literal(true),
  cap_drop: z.array(z.string()),
  security_opt: z.array(z.string()),
  restart: z.string(),
  init: z.boolean().optional(),
  network_mode: z.string().optional(),
  networks: z.array(z.string()).default([]),
  ports: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  depends_on: z.record(z.string(), condition).default({}),
  profiles: z.array(z.string()).default([]),
  mem_limit: z.string(),
  memswap_limit: z.string(),
  cpus: z.number(),
  pids_limit: z.number(),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
});
const composeFile = z.object({
  services: z.record(z.string(), service),
  networks: z.record(z.string(), z.unknown()),
  volumes: z.record(z.string(), z.unknown()),
});

const text = readFileSync(join(root, "docker-compose.yml"), "utf8");
const compose = composeFile.parse(parse(text, { merge: true }));
const services = Object.entries(compose.services);

const operations = readFileSync(join(root, "docs/operations.md"), "utf8");
const policyPage = readFileSync(join(root, "docs/policy.md"), "utf8");

/** Runs a command of `causeway`; a fault is thrown. */
async function causeway(...words: string[]): Promise<void> {
  const quiet = () => undefined;
  const { signal } = new AbortController();
  await createProgram({
    version: "0",
    env: {},
    signal,
    print: quiet,
    warn: quiet,
    setExitCode: quiet,
  }).parseAsync(words, { from: "user" });
}

function serviceNamed(name: string): z.output<typeof service> {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  return found;
}

/** Services that a volume is mounted into. */
function holders(volume: string): string[] {
  return services
    .filter(([, { volumes }]) => volumes.some((mount) => mount.startsWith(`${volume}:`)))
    .map(([name]) => name);
}

/** Settings files that the process of a service reads. */
const FILES_OF_SERVICE: Readonly<Record<string, readonly string[]>> = {
  node: ["config", "app"],
  "sidecar-online": ["sidecar"],
  "sidecar-offline": ["sidecar"],
  indexer: ["indexer"],
  explorer: ["explorer"],
  console: ["console"],
  migrate: ["watcher"],
  operator: ["config", "app", "sidecar", "watcher", "worker", "indexer", "explorer", "console"],
  "deposit-watcher": ["watcher"],
  "withdrawal-worker": ["worker"],
  treasury: ["worker"],
};

function filesOf(name: string): ConfigFile[] {
  const names = FILES_OF_SERVICE[name] ?? [];
  return KIT_CONFIG_FILES.filter((file) => names.includes(file.name));
}

function variablesOf(file: ConfigFile): string[] {
  return Object.entries(file.sections).flatMap(([section, fields]) =>
    Object.keys(fields).map((key) =>
      environmentName(file.name, section === "" ? key : `${section}.${key}`),
    ),
  );
}

/** Variables that are no setting of a file: where the services are. */
const SERVICE_VARIABLES = new Set([
  ...Object.keys(NODE_ENVIRONMENT),
  "DATABASE_URL",
  "REDIS_URL",
  "REDIS_PASSWORD_FILE",
  "PGPASSFILE",
  "CAUSEWAY_HOME",
]);

/** Host of a URL or of a listen address, where it is another service's. */
function hostIn(value: string): string | undefined {
  const host = /^(?:[a-z]+:\/\/)?(?:[a-z_]+@)?([a-z][a-z-]*):\d+/.exec(value)?.[1];
  return host === undefined || !Object.hasOwn(compose.services, host) ? undefined : host;
}

const LINTERS: readonly (readonly string[])[] = [
  ["yamllint", "--strict", "-d", "{extends: relaxed, rules: {line-length: {max: 110}}}"],
  ["dclint"],
];

describe("docker-compose.yml", () => {
  it("is valid for docker-compose where that program is installed", () => {
    const program = ["docker-compose", "/usr/bin/docker-compose"].find(
      (name) => spawnSync(name, ["version"]).status === 0,
    );
    if (program === undefined) {
      process.stdout.write("docker-compose is not installed: its own check is left out\n");
      return;
    }
    const result = spawnSync(program, ["--file", join(root, "docker-compose.yml"), "config"], {
      encoding: "utf8",
    });
    expect(`${result.status} ${result.stderr}`).toBe("0 ");
  });

  it("runs every service as an ordinary user, read-only and without capabilities", () => {
    for (const [name, { user, cap_drop, security_opt }] of services) {
      expect({ name, user, cap_drop, security_opt }).toEqual({
        name,
        user: "999:999",
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
      });
    }
  });

  it("has a first process in ours that ends them also while they load, when nothing hears a signal yet", () => {
    const ours = services.filter(([, { image }]) => image === "causeway:local");
    expect(ours.filter(([, { init }]) => init !== true).map(([name]) => name)).toEqual([]);
    expect(ours.length).toBeGreaterThan(10);
  });

  it("is in order for the linters that are installed", () => {
    for (const [program = "", ...words] of LINTERS) {
      const isInstalled = spawnSync(program, ["--version"]).error === undefined;
      if (!isInstalled) {
        process.stdout.write(`${program} is not installed: its check is left out\n`);
        continue;
      }
      const given = [...words, join(root, "docker-compose.yml")];
      const { status, stdout } = spawnSync(program, given, { encoding: "utf8" });
      expect(`${program} ${status} ${stdout}`).toBe(`${program} 0 `);
    }
  });

  it("limits memory, processors and processes of every service, without swap", () => {
    let sum = 0;
    for (const [name, { mem_limit, memswap_limit, cpus, pids_limit }] of services) {
      expect({ name, mem_limit }).toEqual({ name, mem_limit: expect.stringMatching(/^\d+[mg]$/) });
      expect({ name, memswap_limit }).toEqual({ name, memswap_limit: mem_limit });
      expect({ name, isBound: cpus > 0 && cpus <= 2 && pids_limit <= 256 }).toEqual({
        name,
        isBound: true,
      });
      sum += Number.parseInt(mem_limit, 10) * (mem_limit.endsWith("g") ? 1_024 : 1);
    }
    // All of it at once fits into a host of 12 GiB.
    expect(sum).toBeLessThan(12 * 1_024);
  });

  it("takes images of others by digest, and by a variable, so that another can be named", () => {
    for (const [name, { image }] of services) {
      const isOurs = image === "causeway:local";
      const isNamed = /^\$\{[A-Z]+_IMAGE:-[a-z]+:[0-9.]+-[a-z]+@sha256:[0-9a-f]{64}\}$/.test(image);
      expect({ name, image, known: isOurs || isNamed }).toEqual({ name, image, known: true });
    }
    expect(readFileSync(join(root, "docs/operations.md"), "utf8")).toContain("POSTGRES_IMAGE=");
  });

  it("goes out by the network that the page names: the engine takes the first name that has a way", () => {
    const page = readFileSync(join(root, "docs/operations.md"), "utf8");
    for (const [name, network] of [
      ["node", "chain-public"],
      ["deposit-watcher", "deposits"],
      ["withdrawal-worker", "signer"],
    ] as const) {
      const open = serviceNamed(name).networks.filter(
        (each) => z.object({ internal: z.literal(true) }).safeParse(compose.networks[each]).error,
      );
      expect([name, open.toSorted()[0]]).toEqual([name, network]);
      expect(page).toContain(`from \`${network}\``);
    }
  });

  it("has pages that say how the treasury is stopped with the rest", () => {
    for (const name of ["operations.md", "treasury.md"]) {
      expect(readFileSync(join(root, "docs", name), "utf8")).toContain("COMPOSE_PROFILES=treasury");
    }
  });

  it("asks whether parts are ready, not only whether they live", () => {
    for (const [name, { healthcheck }] of services) {
      const words = healthcheck?.test.join(" ") ?? "";
      expect(`${name} ${words.includes("/health")}`).toBe(`${name} false`);
    }
    for (const name of [
      "sidecar-online",
      "sidecar-offline",
      "deposit-watcher",
      "indexer",
      "explorer",
      "console",
    ]) {
      expect(serviceNamed(name).healthcheck?.test.join(" ")).toContain("/ready");
    }
    expect(serviceNamed("withdrawal-worker").healthcheck?.test.join(" ")).toContain("/ready");
    expect(serviceNamed("node").healthcheck?.test.join(" ")).toContain("catching_up===false");
  });

  it("keeps signer, public servers and Redis in networks apart", () => {
    const shared = (left: string, right: string) =>
      serviceNamed(left).networks.filter((one) => serviceNamed(right).networks.includes(one));
    for (const other of [
      "sidecar-online",
      "sidecar-offline",
      "deposit-watcher",
      "indexer",
      "explorer",
      "redis",
    ]) {
      const expected = other === "redis" ? ["queue"] : [];
      expect([other, shared("withdrawal-worker", other)]).toEqual([other, expected]);
    }
    expect(shared("withdrawal-worker", "node")).toEqual(["signer"]);
    const withRedis = services.filter(([, { networks }]) => networks.includes("queue"));
    expect(withRedis.map(([name]) => name).toSorted()).toEqual(["redis", "withdrawal-worker"]);
    for (const data of [
      "operator-data",
      "watcher-data",
      "worker-data",
      "treasury-data",
      "indexer-data",
      "queue",
    ]) {
      expect(compose.networks[data]).toEqual({ internal: true });
    }
    for (const name of ["node", "sidecar-online", "sidecar-offline", "explorer", "console"]) {
      expect([name, shared(name, "postgres")]).toEqual([name, []]);
    }
    // The console meets each API apart: nobody else comes to the signer through it.
    expect(shared("console", "withdrawal-worker")).toEqual(["desk-withdrawals"]);
    expect(shared("console", "deposit-watcher")).toEqual(["desk-deposits"]);
  });

  it("opens the database in each service's own role, and nowhere as a superuser", () => {
    const users = services.flatMap(([name, { environment }]) => {
      const url = environment["DATABASE_URL"];
      return url === undefined ? [] : [[name, new URL(url).username]];
    });
    expect(Object.fromEntries(users)).toEqual({
      migrate: "causeway",
      "deposit-watcher": ledgerRole("causeway", "watcher"),
      "withdrawal-worker": ledgerRole("causeway", "worker"),
      treasury: ledgerRole("causeway", "worker"),
      operator: ledgerRole("causeway", "operator"),
      indexer: indexerRole("causeway"),
    });
    const owner = readFileSync(join(root, "deploy/postgres-owner.sql"), "utf8");
    expect(owner).toMatch(/CREATE ROLE causeway LOGIN NOSUPERUSER NOCREATEDB CREATEROLE/);
    expect(owner.trim().split("\n").at(-1)).toBe("ALTER ROLE postgres NOLOGIN;");
    expect(owner).toContain("/run/causeway/config/postgres.password");
  });

  it("starts the database from outside after a crash of one of its processes", () => {
    const database = serviceNamed("postgres");
    expect(database.command).toEqual(["postgres", "-c", "restart_after_crash=off"]);
    expect(database.restart).toBe("unless-stopped");
  });

  it.each([
    ["is ready where the owner gets in and the superuser does not", "echo f", 0],
    ["is not ready where the first start left the superuser's login", "echo t", 1],
    ["is not ready where the first start made no owner", "exit 2", 1],
  ])("asks the database itself: it %s", (_name, psql, status) => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-psql-"));
    // It stands in for the image's, and knows what it must have been given.
    const asked =
      '[ "$PGPASSWORD" = hush ] || exit 3; case "$*" in *--username=causeway*) ;; *) exit 3;; esac';
    writeFileSync(join(folder, "psql"), `#!/bin/sh\n${asked}\n${psql}\n`, { mode: 0o755 });
    writeFileSync(join(folder, "password"), "hush\n");
    const [kind, script = ""] = serviceNamed("postgres").healthcheck?.test ?? [];
    expect(kind).toBe("CMD-SHELL");
    const words = script
      .replaceAll("$$", "$")
      .replace("/run/causeway/config/postgres.password", join(folder, "password"));
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    expect(spawnSync("sh", ["-c", words], { env }).status).toBe(status);
    rmSync(folder, { recursive: true });
  });

  it("gives Redis its password by files", () => {
    expect(serviceNamed("redis").command).toContain("/run/causeway/config/redis.conf");
    expect(holders("redis-secret")).toEqual(["init", "redis"]);
    const { environment } = serviceNamed("withdrawal-worker");
    expect(environment["REDIS_PASSWORD_FILE"]).toBe("/home/causeway/config/redis.password");
    expect(environment["REDIS_URL"]).not.toContain("@");
  });

  it("has an operator who is asked for, signs nothing and sees every part", () => {
    const { profiles, volumes, environment, ports } = serviceNamed("operator");
    expect({ profiles, volumes, ports }).toEqual({
      profiles: ["operator"],
      volumes: ["desk-home:/home/causeway:ro", "console-home:/home/console"],
      ports: [],
    });
    const { endpoints } = loadKitConfig({ home: "/nonexistent", env: environment, portOffset: 0 });
    const { otherNodes: _none, ...urls } = endpoints;
    for (const [part, url] of Object.entries(urls)) {
      if (url === undefined) continue;
      const { hostname } = new URL(url.includes("//") ? url : `grpc://${url}`);
      expect({ part, host: hostIn(url) }).toEqual({ part, host: hostname });
    }
  });

  it("has a treasury that is asked for, alone with node and database, and alone with its seed", () => {
    const { profiles, ports, networks, healthcheck } = serviceNamed("treasury");
    expect({ profiles, ports }).toEqual({ profiles: ["treasury"], ports: [] });
    for (const network of networks) {
      const inside = services.filter(([, other]) => other.networks.includes(network));
      expect(inside.map(([name]) => name)).toEqual([
        network === "sweeps" ? "node" : "postgres",
        "treasury",
      ]);
    }
    expect(healthcheck?.test.join(" ")).toContain("/home/causeway/data/treasury-round");
    expect(holders("treasury-home")).toEqual(["init", "treasury"]);
  });

  it("takes a treasury for well for as long as its rounds may be apart, and no longer", async () => {
    const check = serviceNamed("treasury").healthcheck?.test.at(-1) ?? "";
    const folder = mkdtempSync(join(tmpdir(), "causeway-round-"));
    const file = join(folder, "treasury-round");
    const rounds = new WatchedRounds({
      guard: { look: async () => undefined },
      sweeper: { round: async () => false },
      nowhere: { look: async () => false },
      homeSwitch: { look: async () => undefined, trouble: () => undefined },
      policy: { current: async () => hashPolicy(PERMISSIVE_POLICY) },
      file,
      holdsMs: treasuryRoundHoldsMs(LONGEST_SCAN_INTERVAL_MS),
      log: silentLog,
    });
    await rounds.round(new AbortController().signal);
    const nowMs = Date.now();
    const codeAfter = (waitedMs: number) => {
      const script = check.replace("/home/causeway/data/treasury-round", file);
      const later = `Date.now=()=>${nowMs + waitedMs};`;
      return spawnSync(process.execPath, ["-e", later + script]).status;
    };
    expect([codeAfter(0), codeAfter(LONGEST_SCAN_INTERVAL_MS + 60_000)]).toEqual([0, 0]);
    expect(codeAfter(LONGEST_SCAN_INTERVAL_MS + 121_000)).toBe(1);
    // A clock that was put back: whether the treasury works shows at the end of its next round.
    expect([codeAfter(-50_000), codeAfter(-70_000)]).toEqual([0, 1]);
    await rounds.forget();
    expect(codeAfter(0)).toBe(1);
    rmSync(folder, { recursive: true });
  });

  it("checks the health of every service that stays up", () => {
    for (const [name, { restart, healthcheck }] of services) {
      expect({ name, checked: healthcheck !== undefined }).toEqual({
        name,
        checked: restart !== "no",
      });
    }
  });

  it("publishes on 127.0.0.1 only, and the database and Redis not at all", () => {
    for (const [name, { ports }] of services) {
      for (const port of ports) expect(`${name} ${port}`).toMatch(/ 127\.0\.0\.1:(\d+):\1$/);
    }
    expect(serviceNamed("postgres").ports).toEqual([]);
    expect(serviceNamed("redis").ports).toEqual([]);
  });

  it("sets only variables that the processes know, with values that they accept", () => {
    for (const [name, { environment }] of services) {
      if (name === "postgres") continue; // Its variables are its image's.
      const files = filesOf(name);
      const known = new Set(files.flatMap(variablesOf));
      for (const variable of Object.keys(environment)) {
        const isKnown = known.has(variable) || SERVICE_VARIABLES.has(variable);
        expect(`${name} ${variable} ${isKnown}`).toBe(`${name} ${variable} true`);
      }
      for (const file of files) {
        expect(() => loadConfig({ home: "/nonexistent", env: environment }, file)).not.toThrow();
      }
    }
  });

  it("makes every process listen on all interfaces of its container, on the published ports", () => {
    for (const [name, { environment, ports }] of services) {
      const listened = Object.values(environment).flatMap((value) => {
        const match = /^(?:tcp:\/\/)?0\.0\.0\.0:(\d+)$/.exec(value);
        return match?.[1] === undefined ? [] : [match[1]];
      });
      const published = ports.map((port) => port.split(":").at(-1) ?? "");
      expect({ name, ports: listened.toSorted() }).toEqual({ name, ports: published.toSorted() });
    }
  });

  it("names existing services, on a common network, in every address", () => {
    for (const [name, { environment, networks }] of services) {
      for (const value of Object.values(environment)) {
        const host = hostIn(value);
        if (host === undefined) continue;
        const target = serviceNamed(host);
        const common = target.networks.filter((network) => networks.includes(network));
        expect(`${name} -> ${value}: ${common.length > 0}`).toBe(`${name} -> ${value}: true`);
      }
    }
  });

  it("starts in order: homes, then databases and node, then migrations, then their users", () => {
    for (const [name, { depends_on }] of services) {
      for (const [needed, { condition: when }] of Object.entries(depends_on)) {
        const isOneShot = serviceNamed(needed).restart === "no";
        // Compose gives up on what is unhealthy, as these are for as long as they catch up.
        const isSlow = ["node", "sidecar-online"].includes(needed);
        const whenUp = isSlow ? "service_started" : "service_healthy";
        const expected = isOneShot ? "service_completed_successfully" : whenUp;
        expect(`${name} ${needed} ${when}`).toBe(`${name} ${needed} ${expected}`);
      }
    }
    expect(Object.keys(serviceNamed("migrate").depends_on).toSorted()).toEqual([
      "node",
      "postgres",
    ]);
    for (const name of ["deposit-watcher", "withdrawal-worker", "treasury", "indexer"]) {
      expect(Object.keys(serviceNamed(name).depends_on)).toContain("migrate");
    }
  });

  it("lets a person's commands start whatever of the kit is down", () => {
    const needed = new Set<string>();
    const add = (name: string): void => {
      for (const other of Object.keys(serviceNamed(name).depends_on)) {
        if (needed.has(other)) continue;
        needed.add(other);
        add(other);
      }
    };
    add("operator");
    expect([...needed]).toEqual([]);
  });

  it("has a form on a page for each command that the operator's home cannot run", () => {
    const [, section = ""] = operations.split("### What is typed elsewhere");
    const forms = `${section.split("\n## ")[0]}\n${policyPage}`
      .replaceAll("\\\n", "")
      .matchAll(
        /docker compose run --rm --no-deps ([a-z-]+) dist\/cli\/main\.js ([a-z]+ [a-z]+)(?= )(.*)$/gm,
      );
    const written = new Map<string, string[]>();
    for (const [line, name = "", command = "", rest = ""] of forms) {
      const [, home = ""] = /--home (\/\S+?)(?:\/\$home)?(?:\s|$)/.exec(rest) ?? [];
      const mounts = serviceNamed(name).volumes.map((mount) => mount.split(":").slice(1).join(":"));
      const isWritten = mounts.some((mount) => mount === home || mount.startsWith(`${home}/`));
      expect(`${isWritten} ${line}`).toBe(`true ${line}`);
      // "indexer rebuild ... # or: verify"
      const [, other] = /# or: ([a-z]+)$/.exec(rest) ?? [];
      const group = command.split(" ")[0] ?? "";
      for (const one of [command, ...(other === undefined ? [] : [`${group} ${other}`])])
        written.set(one, [...(written.get(one) ?? []), name]);
    }
    expect(Object.fromEntries(written)).toEqual({
      "wallets add": ["withdrawal-worker"],
      "tokens add": ["init"],
      "indexer rebuild": ["indexer"],
      "indexer verify": ["indexer"],
      "audit reserves": ["withdrawal-worker"],
      "killswitch lift": ["withdrawal-worker", "treasury"],
    });
    expect(readFileSync(join(root, "docs/rotation.md"), "utf8")).toContain(
      "(operations.md#what-is-typed-elsewhere)",
    );
  });

  it("adds a token in every home that has a list, and each of them takes it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-homes-"));
    try {
      await causeway("init", "--home", join(folder, "operator"), "--role-homes", folder);
      const having = ["operator", ...ROLE_NAMES].filter((name) =>
        existsSync(join(folder, name, "config", "tokens.json")),
      );
      const [, named = ""] = /^for home in ([a-z -]+); do$/m.exec(operations) ?? [];
      expect(named.split(" ").toSorted()).toEqual(having.toSorted());
      const token = ["--address", `0x${"ab".repeat(20)}`, "--symbol", "GOLD", "--decimals", "6"];
      for (const name of having) {
        await causeway("tokens", "add", ...token, "--home", join(folder, name));
        const list = readFileSync(join(folder, name, "config", "tokens.json"), "utf8");
        expect(`${name} ${list}`).toContain('"GOLD"');
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("keeps secrets out of variables and commands, and apart from those who need them not", () => {
    for (const [name, { environment, command = [] }] of services) {
      const words = [...Object.entries(environment).flat(), ...command].join(" ");
      expect(`${name} ${/:\/\/[^/\s]*:[^/\s]*@/.test(words)}`).toBe(`${name} false`);
      expect(`${name} ${/--requirepass|PGPASSWORD|POSTGRES_PASSWORD\b/.test(words)}`).toBe(
        `${name} false`,
      );
    }
    expect(holders("worker-home")).toEqual(["init", "withdrawal-worker"]);
    expect(holders("node-home")).toEqual(["init", "node"]);
    expect(holders("operator-home")).toEqual(["init"]);
    expect(holders("console-home")).toEqual(["init", "console", "operator"]);
  });

  it("lets those write into their homes who keep there what no database may forget", () => {
    // Totals of the signer, marks of the ledger, rounds of the treasury.
    for (const [name, home] of [
      ["withdrawal-worker", "worker-home"],
      ["deposit-watcher", "watcher-home"],
      ["treasury", "treasury-home"],
    ] as const) {
      expect(serviceNamed(name).volumes).toContain(`${home}:/home/causeway`);
    }
  });

  it("keeps the offline API alone on a network of its own", () => {
    expect(serviceNamed("sidecar-offline").networks).toEqual(["offline"]);
    // The operator asks it whether it is ready, and listens on nothing.
    const inside = services.filter(([, { networks }]) => networks.includes("offline"));
    expect(inside.map(([name]) => name)).toEqual(["sidecar-offline", "operator"]);
    const offline = JSON.stringify(compose.networks["offline"]);
    expect(offline).toContain('"com.docker.network.bridge.enable_ip_masquerade":"false"');
  });

  it("gives Redis an append-only file and forbids eviction", () => {
    const command = serviceNamed("redis").command?.join(" ") ?? "";
    expect(command).toContain("--appendonly yes");
    expect(command).toContain("--maxmemory-policy noeviction");
  });

  it("uses declared networks and volumes, and a folder of the image for every role's home", () => {
    const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8");
    for (const [name, { networks, volumes }] of services) {
      for (const network of networks) expect(Object.keys(compose.networks)).toContain(network);
      for (const mount of volumes) {
        const [volume = "", target = ""] = mount.split(":");
        if (volume.startsWith("./")) {
          expect(`${volume} ${existsSync(join(root, volume))}`).toBe(`${volume} true`);
          continue;
        }
        expect(Object.keys(compose.volumes)).toContain(volume);
        if (name === "init") expect(dockerfile).toContain(target);
      }
    }
    const targets = serviceNamed("init").volumes.map((mount) => mount.split(":")[1] ?? "");
    const expected = [...ROLE_NAMES, "operator"].map((role) => `/homes/${role}`);
    expect(targets.toSorted()).toEqual(expected.toSorted());
  });

  it("runs the node with the flags and variables that the kit has for it", () => {
    const { command, environment } = serviceNamed("node");
    expect(command?.slice(0, NODE_FLAGS.length)).toEqual(NODE_FLAGS);
    expect(environment).toMatchObject(NODE_ENVIRONMENT);
  });

  it("runs scripts that exist in the sources", () => {
    for (const [name, { command = [] }] of services) {
      const script = command.find((word) => word.startsWith("dist/"));
      if (script === undefined) continue;
      const source = join(root, script.replace(/^dist\//, "").replace(/\.js$/, ".ts"));
      expect(`${name} ${existsSync(source)}`).toBe(`${name} true`);
    }
  });
});

describe("the Dockerfile", () => {
  it("takes both stages from one image, by digest, and packages by lock", () => {
    const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8");
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    expect(bases).toEqual(["${NODE_IMAGE}", "${NODE_IMAGE}"]);
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+-[a-z]+-slim@sha256:[0-9a-f]{64}$/m);
    expect(dockerfile).toContain("npm ci ");
    expect(dockerfile).not.toMatch(/npm install|:latest|^ADD |curl|apt-get/m);
  });

  it("ends as an ordinary user and copies no test or secret", () => {
    const lines = readFileSync(join(root, "Dockerfile"), "utf8").split("\n");
    expect(lines.filter((line) => line.startsWith("USER")).at(-1)).toBe("USER 999:999");
    const ignored = readFileSync(join(root, ".dockerignore"), "utf8").split("\n");
    for (const name of [".git", ".causeway", "node_modules", "dist", "test/*"]) {
      expect(ignored).toContain(name);
    }
  });
});

describe("the runbook of a database under compose", () => {
  const page = readFileSync(join(root, "docs/restore.md"), "utf8");
  const blocks = [...page.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = ""]) => block);

  /** The block that has these words in it. */
  function blockWith(words: string): string {
    const found = blocks.filter((block) => block.includes(words));
    expect([words, found.length]).toEqual([words, 1]);
    return found[0] ?? "";
  }

  /**
   * Runs a block by a shell, where both programs are these lines of a shell.
   * @returns what the programs were called with, and the files of the folder afterwards
   */
  function run(block: string, { program, dump }: { program: string; dump: string }) {
    const folder = mkdtempSync(join(tmpdir(), "causeway-runbook-"));
    writeFileSync(join(folder, "causeway.dump"), dump);
    for (const name of ["docker", "pg_dump"]) {
      const lines = `#!/bin/sh\necho "${name} $*" >> calls\n${program}\n`;
      writeFileSync(join(folder, name), lines, { mode: 0o755 });
    }
    const env = { PATH: `${folder}:/usr/bin:/bin` };
    const { status } = spawnSync("sh", ["-c", block], { cwd: folder, env });
    const read = (name: string) => {
      const file = join(folder, name);
      return existsSync(file) ? readFileSync(file, "utf8") : "";
    };
    const after = {
      isDone: status === 0,
      dump: read("causeway.dump"),
      override: read("docker-compose.override.yml"),
      calls: read("calls").trimEnd().split("\n"),
    };
    rmSync(folder, { recursive: true });
    return after;
  }

  it("leaves the dump of before where a new one is not whole", () => {
    const dumps = blocks.filter((block) => block.includes("pg_dump"));
    expect(dumps).toHaveLength(2);
    for (const block of dumps) {
      // Into the file that is named, or out of the container.
      const write = (what: string) =>
        `for one in "$@"; do case "$one" in --file=*) exec > "\${one#--file=}";; esac; done\necho ${what}`;
      const cutOff = run(block, { program: `${write("half")}\nexit 1`, dump: "whole" });
      expect([cutOff.isDone, cutOff.dump]).toEqual([false, "whole"]);
      const made = run(block, { program: write("new"), dump: "whole" });
      expect([made.isDone, made.dump]).toEqual([true, "new\n"]);
    }
  });

  it("restores into a volume of its own each time, and goes on behind no line that failed", () => {
    const block = blockWith("docker-compose.override.yml");
    expect(block).not.toContain("pg_dump");
    const { isDone, override, calls } = run(block, { program: "", dump: "whole" });
    expect([isDone, calls.length]).toEqual([true, 4]);
    expect(parse(override)).toEqual({
      volumes: {
        "postgres-data": { name: expect.stringMatching(/^causeway-postgres-2[0-9]{11}$/) },
      },
    });
    expect(compose.volumes).toHaveProperty("postgres-data");
    const failing = run(block, { program: "exit 1", dump: "whole" });
    expect([failing.isDone, failing.override, failing.calls.length]).toEqual([false, "", 1]);
    const stuck = run(block, { program: 'case "$*" in *--wait*) exit 1;; esac', dump: "whole" });
    expect([stuck.isDone, stuck.calls.length]).toEqual([false, 2]);
  });

  it("asks compose for the volume that a start uses, before one is removed", () => {
    for (const told of [page, operations]) {
      expect(told).not.toContain("PROJECT_postgres-data");
      expect(told).toContain("`docker compose config`");
    }
  });
});
