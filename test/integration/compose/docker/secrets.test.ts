/** What each service of docker-compose.yml is given: settings, its role of the database, secrets, homes. */
import { describe, expect, it } from "@jest/globals";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { indexerRole, ledgerRole } from "../../../../ledger/roles.js";
import { KIT_CONFIG_FILES } from "../../../../cli/home/kit-config.js";
import { NODE_ENVIRONMENT } from "../../../../cli/home/network/kit-nodes.js";
import { type ConfigFile, environmentName, loadConfig } from "../../../../runtime/config/config.js";
import { holders, root, serviceNamed, services } from "./compose-file.js";

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

describe("docker-compose.yml", () => {
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

  it("gives Redis its password by files", () => {
    expect(serviceNamed("redis").command).toContain("/run/causeway/config/redis.conf");
    expect(holders("redis-secret")).toEqual(["init", "redis"]);
    const { environment } = serviceNamed("withdrawal-worker");
    expect(environment["REDIS_PASSWORD_FILE"]).toBe("/home/causeway/config/redis.password");
    expect(environment["REDIS_URL"]).not.toContain("@");
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

  it("gives Redis an append-only file and forbids eviction", () => {
    const command = serviceNamed("redis").command?.join(" ") ?? "";
    expect(command).toContain("--appendonly yes");
    expect(command).toContain("--maxmemory-policy noeviction");
  });
});
