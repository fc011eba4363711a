/** What every container of docker-compose.yml is bound by, and what runs in it. */
import { describe, expect, it } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { NODE_ENVIRONMENT, NODE_FLAGS } from "../../../../cli/home/network/kit-nodes.js";
import { ROLE_NAMES } from "../../../../cli/home/role-homes.js";
import { compose, root, serviceNamed, services } from "./compose-file.js";

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
