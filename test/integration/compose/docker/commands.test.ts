/** What a person types under compose: the operator's service, the treasury's, and forms on the pages. */
import { describe, expect, it } from "@jest/globals";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadKitConfig } from "../../../../cli/home/kit-config.js";
import { ROLE_NAMES } from "../../../../cli/home/role-homes.js";
import { createProgram } from "../../../../cli/program/program.js";
import { holders, hostIn, operations, root, serviceNamed, services } from "./compose-file.js";

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

describe("docker-compose.yml", () => {
  it("has pages that say how the treasury is stopped with the rest", () => {
    for (const name of ["operations.md", "treasury.md"]) {
      expect(readFileSync(join(root, "docs", name), "utf8")).toContain("COMPOSE_PROFILES=treasury");
    }
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
});
