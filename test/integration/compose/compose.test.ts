import { describe, expect, it } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { KIT_CONFIG_FILES } from "../../../cli/kit-config.js";
import { ROLE_NAMES } from "../../../cli/role-homes.js";
import { type ConfigFile, environmentName, loadConfig } from "../../../runtime/config.js";

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
  network_mode: z.string().optional(),
  networks: z.array(z.string()).default([]),
  ports: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  depends_on: z.record(z.string(), condition).default({}),
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
  migrate: ["watcher"],
  "deposit-watcher": ["watcher"],
  "withdrawal-worker": ["worker"],
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
const SERVICE_VARIABLES = new Set(["DATABASE_URL", "REDIS_URL", "PGPASSFILE"]);

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
      if (name === "postgres") continue;
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
        if (!URL.canParse(value) || value.startsWith("tcp:")) continue;
        const target = serviceNamed(new URL(value).hostname);
        const common = target.networks.filter((network) => networks.includes(network));
        expect(`${name} -> ${value}: ${common.length > 0}`).toBe(`${name} -> ${value}: true`);
      }
    }
  });

  it("starts in order: homes, then databases and node, then migrations, then their users", () => {
    for (const [name, { depends_on }] of services) {
      for (const [needed, { condition: when }] of Object.entries(depends_on)) {
        const isOneShot = serviceNamed(needed).restart === "no";
        const expected = isOneShot ? "service_completed_successfully" : "service_healthy";
        expect(`${name} ${needed} ${when}`).toBe(`${name} ${needed} ${expected}`);
      }
    }
    expect(Object.keys(serviceNamed("migrate").depends_on).toSorted()).toEqual([
      "node",
      "postgres",
    ]);
    for (const name of ["deposit-watcher", "withdrawal-worker"]) {
      expect(Object.keys(serviceNamed(name).depends_on)).toContain("migrate");
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
  });

  it("keeps the offline API alone on a network of its own", () => {
    expect(serviceNamed("sidecar-offline").networks).toEqual(["offline"]);
    for (const [name, { networks }] of services) {
      if (name !== "sidecar-offline") expect(networks).not.toContain("offline");
    }
    const offline = JSON.stringify(compose.networks["offline"]);
    expect(offline).toContain('"com.docker.network.bridge.enable_ip_masquerade":"false"');
    expect(compose.networks["data"]).toEqual({ internal: true });
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
        expect(Object.keys(compose.volumes)).toContain(volume);
        if (name === "init") expect(dockerfile).toContain(target);
      }
    }
    const targets = serviceNamed("init").volumes.map((mount) => mount.split(":")[1] ?? "");
    const expected = [...ROLE_NAMES, "operator"].map((role) => `/homes/${role}`);
    expect(targets.toSorted()).toEqual(expected.toSorted());
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
  it("ends as an ordinary user and copies no test or secret", () => {
    const lines = readFileSync(join(root, "Dockerfile"), "utf8").split("\n");
    expect(lines.filter((line) => line.startsWith("USER")).at(-1)).toBe("USER 999:999");
    const ignored = readFileSync(join(root, ".dockerignore"), "utf8").split("\n");
    for (const name of [".git", ".causeway", "node_modules", "dist", "test"]) {
      expect(ignored).toContain(name);
    }
  });
});
