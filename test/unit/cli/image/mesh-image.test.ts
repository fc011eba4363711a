/** The image: what its variables mean, and whether its Dockerfile names things that exist. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { homePaths } from "../../../../cli/home/home.js";
import { initHome } from "../../../../cli/home/init.js";
import {
  parseMeshSettings,
  partEnvironment,
  startMesh,
  startPart,
} from "../../../../cli/image/mesh-run.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { createLogger } from "../../../../runtime/process/logger.js";

const root = new URL("../../../../", import.meta.url).pathname;

describe("MODE, NETWORK and PORT", () => {
  it("are read in any case, and PORT has a default", () => {
    expect(parseMeshSettings({ MODE: "ONLINE", NETWORK: "testnet", PORT: "9999" })).toEqual({
      mode: "online",
      network: "testnet",
      port: 9_999,
      chain: "local",
    });
    expect(parseMeshSettings({ MODE: "offline", NETWORK: "MAINNET" })).toEqual({
      mode: "offline",
      network: "mainnet",
      port: 8_080,
      chain: "network",
    });
  });

  it("make a private chain only with testnet's id, and only where no genesis is given", () => {
    const chainOf = (env: Record<string, string>) => {
      const { network, chain } = parseMeshSettings({ MODE: "ONLINE", ...env });
      return `${chain} ${network}`;
    };
    expect(chainOf({ NETWORK: "local" })).toBe("local testnet");
    expect(chainOf({ NETWORK: "testnet" })).toBe("local testnet");
    expect(chainOf({ NETWORK: "testnet", GENESIS: "/data/g.json" })).toBe("network testnet");
    expect(chainOf({ NETWORK: "mainnet" })).toBe("network mainnet");
    expect(() => chainOf({ NETWORK: "local", SEEDS: "host:1" })).toThrow(/GENESIS and SEEDS/);
  });

  it("leave it to a setting where the API listens", () => {
    const settings = parseMeshSettings({ MODE: "ONLINE", NETWORK: "testnet", PORT: "9999" });
    const name = "CAUSEWAY_SIDECAR_ONLINE_LISTEN";
    expect(partEnvironment(settings, {})[name]).toBe("0.0.0.0:9999");
    expect(partEnvironment(settings, { [name]: "[::]:8080" })[name]).toBe("[::]:8080");
  });

  it("are refused with all faults at once", () => {
    const read = (env: Record<string, string>) => {
      try {
        return JSON.stringify(parseMeshSettings(env));
      } catch (error) {
        return error instanceof Error ? error.message : "";
      }
    };
    const all = read({ MODE: "BOTH", NETWORK: "goerli", PORT: "99999" });
    for (const name of ["MODE", "NETWORK", "PORT"]) expect(all).toContain(`${name} must be`);
    expect(read({})).toMatch(/MODE must.*NETWORK must/);
    for (const PORT of ["", "0", "-1", "1e3", "65536", "80 "]) {
      expect(read({ MODE: "ONLINE", NETWORK: "testnet", PORT })).toMatch(/^PORT must be[^;]*\.$/);
    }
  });
});

describe("an online container of mainnet", () => {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  function contextOf(env: Record<string, string>, home: string) {
    const ended = new AbortController();
    const log = createLogger({ component: "test", level: "silent" });
    const nothing = () => undefined;
    const handlers = { fatal: nothing, finish: nothing, busy: nothing, handOver: nothing };
    return { home, portOffset: 0, env, log, signal: ended.signal, ...handlers };
  }

  async function start(env: Record<string, string>, home: string): Promise<string> {
    try {
      await startMesh(contextOf(env, home));
      return "started";
    } catch (error) {
      return error instanceof Error ? error.message : "";
    }
  }

  function newHome(): string {
    const folder = mkdtempSync(join(tmpdir(), "causeway-image-"));
    folders.push(folder);
    return join(folder, "data");
  }

  it("is refused while genesis and seeds are placeholders, and makes no key", async () => {
    const home = newHome();
    const message = await start({ MODE: "ONLINE", NETWORK: "mainnet" }, home);
    expect(message).toMatch(
      /^mainnet cannot be joined: GENESIS must be the file of mainnet's real genesis: .* placeholder; SEEDS must be .*\.$/,
    );
    expect(readdirSync(join(home, "config"))).toEqual([]);
  });

  it("is refused on a volume that an earlier version filled with a private chain", async () => {
    const home = newHome();
    const scrypt = { n: 1_024, r: 8, p: 1 };
    const options = { portOffset: 0, network: "mainnet", configFiles: [], scrypt } as const;
    await initHome({ ...options, paths: homePaths(home), clock: systemClock });
    const message = await start({ MODE: "ONLINE", NETWORK: "mainnet" }, home);
    expect(message).toMatch(/is a private one with the id of mainnet.* use another volume/);
  });

  it("starts nothing on a home that it has lost before", async () => {
    const env = { MODE: "ONLINE", NETWORK: "mainnet" };
    const lost = AbortSignal.abort();
    const context = { ...contextOf(env, newHome()), lost };
    const started = startPart("node", parseMeshSettings(env), context, []);
    await expect(started).rejects.toThrow(/another kit has the home/);
  });
});

/** Instructions of the Dockerfile, continued lines joined. */
const instructions = readFileSync(join(root, "Dockerfile"), "utf8")
  .replace(/\\\n/g, " ")
  .split("\n")
  .filter((line) => line.trim() !== "" && !line.startsWith("#"))
  .map((line) => ({ name: line.split(" ", 1)[0] ?? "", text: line.replace(/^\S+\s+/, "") }));

const lastStage = instructions.slice(
  instructions.findLastIndex((instruction) => instruction.name === "FROM"),
);
const only = (name: string) =>
  lastStage.filter((instruction) => instruction.name === name).map(({ text }) => text);
const words = (text: string | undefined): string[] => JSON.parse(text ?? "[]");

describe("the Dockerfile", () => {
  it("has two stages of one base and no unknown instruction", () => {
    const bases = instructions.filter(({ name }) => name === "FROM").map(({ text }) => text);
    expect(bases.map((text) => text.replace(/ AS .*/, ""))).toEqual([bases[1], bases[1]]);
    const known = [
      "ARG",
      "FROM",
      "WORKDIR",
      "COPY",
      "RUN",
      "ENV",
      "USER",
      "VOLUME",
      "ENTRYPOINT",
      "CMD",
    ];
    expect(instructions.filter(({ name }) => !known.includes(name))).toEqual([]);
  });

  it("runs node and sidecar by default, as an ordinary user, on one volume that is its own", () => {
    const [entry, script, flag, home] = [...words(only("ENTRYPOINT")[0]), ...words(only("CMD")[0])];
    expect([entry, flag]).toEqual(["node", "--home"]);
    const source = join(root, (script ?? "").replace(/^dist\//, "").replace(/\.js$/, ".ts"));
    expect({ source, exists: existsSync(source) }).toEqual({ source, exists: true });
    expect(words(only("VOLUME")[0])).toEqual([home]);
    expect(only("USER")).toEqual(["999:999"]);
    // Made before it becomes a volume: a volume takes over owner and mode from the folder.
    const made = only("RUN").find((text) => text.includes("install --directory --owner=999"));
    expect(made?.split(/\s+/)).toContain(home);
    const order = lastStage.map(({ name }) => name);
    expect(order.indexOf("RUN")).toBeLessThan(order.indexOf("VOLUME"));
  });

  it("copies only what exists or what the build makes", () => {
    const copied = instructions.filter(({ name }) => name === "COPY").map(({ text }) => text);
    const sources = copied.flatMap((text) =>
      text
        .split(/\s+/)
        .filter((word) => !word.startsWith("--"))
        .slice(0, -1)
        .map((word) => word.replace(/^\/app\//, "")),
    );
    const made = ["node_modules", "dist"];
    for (const source of sources) {
      const isThere = made.includes(source) || existsSync(join(root, source));
      expect({ source, isThere }).toEqual({ source, isThere: true });
    }
    expect(sources).toEqual(expect.arrayContaining(["package.json", ...made]));
  });
});
