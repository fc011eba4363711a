/**
 * Helper process of one jest run. It answers on a loopback port, printed as its first line:
 *   GET /compiled  -> { folder }  the product compiled from the present sources
 *   GET /postgres  -> { url }     a server of this run, with a superuser's URL
 * Both are made when first asked for. It ends, with everything it made, when its stdin closes.
 */
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { transformSync } from "@swc/core";
import { Client } from "pg";
import { copyAssets, sourceFiles } from "../../../bin/setup/assets.mjs";
import { joinPackages } from "../../../bin/setup/packages.mjs";
import { freePort } from "../../../bin/testing/test-ports.mjs";
import { swcOptions } from "./swc-options.mjs";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const CACHE = join(ROOT, ".cache");
const COMPILED = join(CACHE, `compiled-${process.pid}`);

let compiled;
let postgres;
let home;
let isEnding = false;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {});
}
process.stdin.on("end", () => void end());
process.stdin.on("error", () => void end());
process.stdin.resume();

const server = createServer((request, response) => {
  answer(request.url)
    .then((body) => response.end(JSON.stringify(body)))
    .catch((error) => {
      response.statusCode = 500;
      response.end(String(error?.stack ?? error));
    });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));

async function answer(url) {
  compiled ??= compile();
  if (url === "/compiled") {
    return { folder: await compiled };
  }
  await compiled;
  postgres ??= startPostgres();
  return { url: superuserUrl((await postgres).url) };
}

/** Translates all sources below .cache/, from where node_modules is found as usual. */
async function compile() {
  removeStale();
  for (const path of sourceFiles(ROOT)) {
    const target = join(COMPILED, path.replace(/\.ts$/, ".js"));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, translate(path));
  }
  await copyAssets(ROOT, COMPILED);
  copyFileSync(join(ROOT, "package.json"), join(COMPILED, "package.json"));
  await joinPackages(COMPILED);
  return COMPILED;
}

function translate(path) {
  try {
    const source = readFileSync(join(ROOT, path), "utf8");
    // Without maps, as in production: half of what each process would read at its start.
    const options = { ...swcOptions, sourceMaps: false, filename: join(ROOT, path) };
    return transformSync(source, options).code;
  } catch (error) {
    return `throw new Error(${JSON.stringify(`${path} does not compile: ${error.message}`)});\n`;
  }
}

/** Removes trees of runs that were killed. */
function removeStale() {
  mkdirSync(CACHE, { recursive: true });
  for (const name of readdirSync(CACHE)) {
    const pid = Number(/^compiled-([0-9]+)$/.exec(name)?.[1] ?? "0");
    if (pid !== 0 && !isAlive(pid)) {
      rmSync(join(CACHE, name), { recursive: true, force: true });
    }
  }
}

/** A real server of the kit's own making; durability is off, because its data dies with it. */
async function startPostgres() {
  const { startEmbeddedPostgres } = await import(
    pathToFileURL(join(COMPILED, "cli", "postgres", "embedded-postgres.js")).href
  );
  const { createLogger } = await import(
    pathToFileURL(join(COMPILED, "runtime", "process", "logger.js")).href
  );
  home = mkdtempSync(join(tmpdir(), "causeway-test-"));
  // mkdtemp closes the folder; the server's account must pass through it.
  chmodSync(home, 0o711);
  const started = await startEmbeddedPostgres({
    home,
    port: await freePort(),
    log: createLogger({ component: "test-postgres", level: "silent" }),
    signal: new AbortController().signal,
    settings: {
      fsync: "off",
      synchronous_commit: "off",
      full_page_writes: "off",
      // Tests open connections by the ten thousands; nobody guesses at passwords of theirs.
      scram_iterations: "1",
    },
  });
  await hashPasswordAnew(superuserUrl(started.url));
  return started;
}

/** The server's superuser, who has the owner's password. */
function superuserUrl(ownerUrl) {
  const admin = new URL(ownerUrl);
  admin.username = "postgres";
  admin.pathname = "/postgres";
  return admin.href;
}

/** Made before the server had its settings: until now each connection hashes 4,096 times. */
async function hashPasswordAnew(url) {
  const client = new Client({ connectionString: url });
  await client.connect();
  const password = client.escapeLiteral(decodeURIComponent(new URL(url).password));
  await client.query(`ALTER ROLE postgres PASSWORD ${password}`);
  await client.end();
}

async function end() {
  if (isEnding) {
    return;
  }
  isEnding = true;
  await Promise.resolve(postgres)
    .then((running) => running?.stop())
    .catch((error) => process.stderr.write(`test services: ${error.message}\n`));
  if (home !== undefined) {
    rmSync(home, { recursive: true, force: true });
  }
  rmSync(COMPILED, { recursive: true, force: true });
  process.exit(0);
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}
