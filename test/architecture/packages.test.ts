/** What package.json promises: packages that are used, test clients apart, and the files of a public project. */
import { describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { z } from "zod";
import { homePaths } from "../../cli/home/home.js";
import { productSources } from "../helpers/sources/source-tree.js";

const names = z.record(z.string(), z.string());
const manifest = z
  .object({
    bin: names,
    dependencies: names,
    devDependencies: names,
    optionalDependencies: names,
    overrides: z.record(z.string(), z.unknown()),
  })
  .parse(JSON.parse(fs.readFileSync("package.json", "utf8")));

/** Programs of the first minute: they install, build and start, before anything is compiled. */
const scripts = fs
  .readdirSync("bin", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".mjs"))
  .map((name) => fs.readFileSync(path.join("bin", name), "utf8"));

/** Packages that nobody imports by name, and who needs them. */
const NEEDED_BY: Readonly<Record<string, string>> = {
  // The compiler, run as a program.
  typescript: "bin/setup/compile.mjs",
};

describe("package.json", () => {
  it("has no package for production that nothing uses", () => {
    const used = new Set(productSources().flatMap(({ packages }) => packages));
    const idle = Object.keys(manifest.dependencies).filter((name) => {
      if (name.startsWith("@types/") || used.has(name)) return false;
      const quoted = new RegExp(`["'\`/]${name.replace("/", "\\/")}["'\`/]`);
      const place = NEEDED_BY[name];
      return place === undefined
        ? !scripts.some((text) => quoted.test(text))
        : !fs.readFileSync(place, "utf8").includes(name);
    });
    expect(idle).toEqual([]);
  });

  // `npm start` builds, and where NODE_ENV is "production" npm installs nothing that only tests need.
  it("has for production the types of every package that the product imports", () => {
    const used = new Set(productSources().flatMap(({ packages }) => packages));
    const typed = Object.keys(manifest.devDependencies).filter((name) => {
      if (!name.startsWith("@types/")) return false;
      return used.has(name.slice("@types/".length).replace(/^(.+)__/, "@$1/"));
    });
    expect(typed).toEqual([]);
  });

  it("keeps other chains' programs and clients out of production", () => {
    const production = { ...manifest.dependencies, ...manifest.optionalDependencies };
    const clients = ["causeway-test-clients", "hardhat", "ethers", "viem", "web3", "solc"];
    for (const name of clients) {
      expect(production).not.toHaveProperty(name);
      expect(manifest.devDependencies).toHaveProperty(name);
    }
    expect(Object.keys(production).filter((name) => /anvil|foundry|cast$/.test(name))).toEqual([]);
  });

  it("names a command that exists", () => {
    for (const file of Object.values(manifest.bin)) expect(fs.existsSync(file)).toBe(true);
    expect(Object.keys(manifest.bin)).toContain("causeway");
  });
});

describe("package-lock.json", () => {
  /** npm's own reading of versions, which comes without types. */
  const semver: { satisfies(version: string, range: string): boolean } = createRequire(
    import.meta.url,
  )("semver");
  const { packages } = z
    .object({
      packages: z.record(
        z.string(),
        z.object({
          version: z.string().optional(),
          peerDependencies: names.default({}),
          optional: z.boolean().default(false),
          os: z.array(z.string()).optional(),
          engines: names.default({}),
        }),
      ),
    })
    .parse(JSON.parse(fs.readFileSync("package-lock.json", "utf8")));

  /** Where Node finds a package from the folder of another: beside it, or beside what holds that. */
  function found(from: string, name: string): string | undefined {
    const holders = from.split("node_modules/");
    for (let depth = holders.length; depth > 0; depth -= 1) {
      const folder = holders.slice(0, depth).join("node_modules/");
      const place = path.posix.join(folder, "node_modules", name);
      if (place in packages && place !== from) return place;
    }
    return undefined;
  }

  /** True where package.json says that a package takes another's version whatever it asks for. */
  function isOverridden(place: string, peer: string): boolean {
    let level: unknown = manifest.overrides;
    for (const name of place.split("node_modules/").slice(1)) {
      const own = z.record(z.string(), z.unknown()).safeParse(level).data ?? {};
      level = own[name.replace(/\/$/, "")];
    }
    return z.object({ [peer]: z.string() }).safeParse(level).success;
  }

  // npm 10, which comes with Node 20 and 22, refuses `npm ci` as out of sync for one that does not,
  // also where that peer is optional; npm 11 lets it pass.
  it("has only peers that fit, or that package.json lets pass", () => {
    const faults = Object.entries(packages).flatMap(([place, { peerDependencies }]) =>
      Object.entries(peerDependencies).flatMap(([peer, range]) => {
        const version = packages[found(place, peer) ?? ""]?.version;
        const isFit =
          found(place, peer) === undefined ||
          (version !== undefined && semver.satisfies(version, range));
        return isFit || isOverridden(place, peer)
          ? []
          : [`${place}: ${peer} ${range}, not ${version}`];
      }),
    );
    expect(faults).toEqual([]);
  });

  // npm leaves such a one out, and a start would call it missing for ever (bin/setup/install.mjs).
  it("has no package of some systems that one of the product's versions of Node is too old for", () => {
    const versions = ["20.19.0", "22.12.0", "24.0.0"];
    const faults = Object.entries(packages).filter(([, { optional, os, engines }]) => {
      const range = engines["node"] ?? "*";
      return optional && os !== undefined && !versions.every((own) => semver.satisfies(own, range));
    });
    expect(faults.map(([place]) => place)).toEqual([]);
  });
});

/** Lines of a file that are neither comments nor empty. */
function linesOf(file: string): string[] {
  const lines = fs.readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}

describe("the project", () => {
  it.each(["LICENSE", "SECURITY.md", "CONTRIBUTING.md", "README.md", "CHANGELOG.md"])(
    "has %s",
    (file) => {
      expect(fs.readFileSync(file, "utf8").length).toBeGreaterThan(200);
    },
  );

  /** Patterns without comments, as .gitignore writes them: one without a slash is of every folder. */
  const gitPatterns = linesOf(".gitignore");

  /** Whether git leaves a file out, by the few forms of patterns that .gitignore has. */
  function isLeftOut(file: string): boolean {
    const folders = file.split("/").map((_name, depth, all) => all.slice(0, depth + 1).join("/"));
    return gitPatterns.some((pattern) => {
      const isOfRoot = pattern.startsWith("/");
      const words = pattern
        .replace(/^\/|\/$/g, "")
        .replaceAll(".", "\\.")
        .replaceAll("*", "[^/]*");
      const wanted = new RegExp(`${isOfRoot ? "^" : "(^|/)"}${words}$`);
      return folders.some((name) => wanted.test(name));
    });
  }

  it("keeps secrets out of git, wherever in the clone a home or a guide's file lies", () => {
    const home = homePaths("/net2/node0");
    const secrets = [
      home.faucetKey,
      home.apiKey,
      home.hotWallet,
      home.hotWalletPassphrase,
      home.depositSeed,
      home.postgresPassword,
      home.validatorKey,
      home.operatorKey,
      home.nodeKey,
      "/net/faucet.key",
      "/net/node0/data/anything",
      "/hook.secret",
      "/ann.password",
      "/ann.pem",
    ];
    expect(secrets.filter((file) => !isLeftOut(file.slice(1)))).toEqual([]);
    expect(["README.md", "net.ts", "test/fixtures/tls/key.pem"].filter(isLeftOut)).toEqual([]);
  });

  it("keeps out of images what it keeps out of git", () => {
    const docker = linesOf(".dockerignore");
    // Of the first folder: nothing of the product makes them elsewhere in a clone.
    const made = ["node_modules", "dist/", "dist.*/", ".causeway/", ".cache/", "*.log"];
    const wanted = gitPatterns.map((pattern) => {
      const words = pattern.replace(/^\/|\/$/g, "");
      return pattern.startsWith("/") || made.includes(pattern) ? words : `**/${words}`;
    });
    expect(docker).toEqual(expect.arrayContaining(wanted));
  });
});
