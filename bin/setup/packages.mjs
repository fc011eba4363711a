/**
 * Joins the packages that the product imports into few files. A process of the kit loads 700 to
 * 1,600 files otherwise, one after the other, which is most of the time that it needs to start.
 * The product does not know: it imports packages by name and finds the joined ones first, because
 * their `node_modules` lies beside it. Where joining is not possible the usual ones are found.
 */
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { sourceFiles } from "./assets.mjs";
import { isAlive } from "./lock.mjs";
import { isWhole, markWhole } from "./whole-folder.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url)).replace(/[/\\]$/, "");
const CACHE = join(ROOT, ".cache", "packages");

/** Packages that find files of their own (native code, workers) by where they lie. */
const LEFT_ALONE = new Set(["level", "pino", "secp256k1"]);

/** Joined ES modules hold CommonJS ones, which ask Node for its own modules by `require`. */
const REQUIRE = `import { createRequire as causewayRequire } from "node:module"; const require = causewayRequire(import.meta.url);`;

/**
 * The check of API files themselves. Making it is 0.27 s of each start, and the product, which asks for
 * none (`validateApiSpec: false`, tests do it), pays for it all the same.
 */
const UNASKED = {
  filter: /express-openapi-validator[/\\]dist[/\\]framework[/\\]openapi\.schema\.validator\.js$/,
  contents: `exports.OpenAPISchemaValidator = class {
  validate() { throw new Error("API files are checked by tests, not by processes"); }
};`,
};

/**
 * The validator of requests follows each reference in an API file by compiling a check of what it finds there,
 * which nobody asks for: a fifth of a start. Where that finds nothing it takes the same place of the file.
 */
const COMPILED_UNASKED = {
  filter:
    /express-openapi-validator[/\\]dist[/\\]middlewares[/\\]parsers[/\\]schema\.preprocessor\.js$/,
  call: "this.ajv.getSchema(ref)",
  quick: "undefined",
};

/**
 * A package brings its program in base64 and reads it by a general conversion of bases: a tenth of a
 * second in each process and thread that runs contracts. Node's own reading gives the same bytes.
 */
const READ_SLOWLY = {
  filter: /rustbn-wasm[/\\]dist[/\\](?:esm|cjs)[/\\]rustbn\.js$/,
  call: "base64.decode(wasmB64.wasm)",
  quick: 'Buffer.from(wasmB64.wasm, "base64")',
};

/**
 * Puts the joined packages into `folder`/node_modules; made once for each state of the lock file.
 * @param {{cache?: string, say?: (text: string) => void}} options
 * cache: where they are kept; other than the clone's own for tests
 * @returns false where the program that joins them is not installed for this machine, or does not run on it
 * @throws the program's faults
 */
export async function joinPackages(folder, { cache = CACHE, say = () => undefined } = {}) {
  const joined = await joinedPackages(cache, say);
  if (joined === undefined) return false;
  cpSync(joined, join(folder, "node_modules"), { recursive: true });
  return true;
}

/** Folder that holds the joined packages, made when it is missing; undefined where none can be. */
async function joinedPackages(cache, say) {
  const wanted = importedPackages();
  const final = join(cache, stampOf(wanted));
  if (isWhole(final)) return final;
  const esbuild = await runningEsbuild(say);
  if (esbuild === undefined) return undefined;
  removeOthers(cache);
  const draft = `${final}.${process.pid}`;
  try {
    const entries = wanted.map(entryOf);
    await joinModules(
      esbuild,
      draft,
      entries.filter(({ isModule }) => isModule),
      wanted,
    );
    for (const entry of entries.filter(({ isModule }) => !isModule)) {
      await joinCommon(esbuild, draft, entry, wanted);
    }
    writeManifests(draft, entries);
    markWhole(draft);
    renameSync(draft, final);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!isWhole(final)) throw error;
  } finally {
    await esbuild.stop();
  }
  return final;
}

/** Asked for a word first: its package is there also where that of this machine's program is not. */
async function runningEsbuild(say) {
  const esbuild = await import("esbuild").catch(() => undefined);
  try {
    await esbuild?.transform("");
    return esbuild;
  } catch (error) {
    const [reason] = error.message.split("\n", 1);
    say(`packages are not joined, which costs time at each start: esbuild does not run: ${reason}`);
    return undefined;
  }
}

/** Removes what was joined from another lock file or is not whole, and drafts of who was killed. */
function removeOthers(cache) {
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache)) {
    const pid = /\.([0-9]+)$/.exec(name)?.[1];
    if (pid !== undefined && isAlive(Number(pid))) continue;
    rmSync(join(cache, name), { recursive: true, force: true });
  }
}

/** What the product's sources import by name, as they write it; sorted. */
function importedPackages() {
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const found = new Set();
  for (const path of sourceFiles(ROOT)) {
    const source = readFileSync(join(ROOT, path), "utf8");
    for (const [, name] of source.matchAll(
      /^(?!import type).*?(?:from|import\()\s*"([^".][^"]*)"/gm,
    )) {
      const owner = packageOf(name);
      if (owner in dependencies && !LEFT_ALONE.has(owner)) found.add(name);
    }
  }
  return [...found].toSorted((left, right) => (left < right ? -1 : 1));
}

function packageOf(specifier) {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

function stampOf(wanted) {
  const hash = createHash("sha256").update(wanted.join("\n"));
  for (const path of ["package-lock.json", "bin/setup/packages.mjs"]) {
    hash.update(readFileSync(join(ROOT, path)));
  }
  return hash.digest("hex").slice(0, 16);
}

function entryOf(specifier) {
  const name = packageOf(specifier);
  const subpath = specifier.slice(name.length + 1);
  const file = fileURLToPath(import.meta.resolve(specifier));
  const isModule = file.endsWith(".mjs") || (file.endsWith(".js") && typeOf(file) === "module");
  return {
    specifier,
    name,
    subpath,
    file,
    isModule,
    out: subpath === "" ? "index" : subpath.replace(/\.js$/, ""),
  };
}

function typeOf(file) {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const path = join(folder, "package.json");
    if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8")).type ?? "commonjs";
  }
}

/** All ES modules in one go: what two of them share is one file, and so one instance. */
async function joinModules(esbuild, draft, entries, wanted) {
  await esbuild.build({
    ...common(wanted, entries),
    entryPoints: Object.fromEntries(entries.map(({ name, out, file }) => [`${name}/${out}`, file])),
    outdir: draft,
    chunkNames: ".shared/[hash]",
    format: "esm",
    splitting: true,
    banner: { js: REQUIRE },
  });
}

/**
 * One CommonJS package; a module around it names what it exports, as Node would find it. Required,
 * not imported: Node searches what it imports for names, which takes longer than running it.
 */
async function joinCommon(esbuild, draft, entry, wanted) {
  const { name, out, file } = entry;
  await esbuild.build({
    ...common(wanted, [entry]),
    entryPoints: [file],
    outfile: join(draft, name, `${out}.cjs`),
    format: "cjs",
  });
  const names = Object.keys(await import(pathToFileURL(file).href)).filter(
    (key) => key !== "default" && key !== "module.exports" && /^[A-Za-z_$][\w$]*$/.test(key),
  );
  // By a name of its own first: some are words of the language, as express.static.
  const list = names
    .map((key, place) => `const export${place} = all.${key};\nexport { export${place} as ${key} };`)
    .join("\n");
  writeFileSync(
    join(draft, name, `${out}.mjs`),
    `${REQUIRE}\nconst all = require("./${out}.cjs");\nexport default all;\n${list}\n`,
  );
}

/** Packages that are joined on their own stay apart, so that each exists once. */
function common(wanted, entries) {
  const own = new Set(entries.map(({ specifier }) => specifier));
  const isApart = new Set(wanted.filter((specifier) => !own.has(specifier)));
  return {
    bundle: true,
    platform: "node",
    target: "node20",
    conditions: ["node"],
    logLevel: "silent",
    legalComments: "eof",
    plugins: [
      {
        name: "unasked",
        setup(build) {
          build.onLoad({ filter: UNASKED.filter }, () => ({ contents: UNASKED.contents }));
        },
      },
      {
        name: "done-quicker",
        setup(build) {
          for (const { filter, call, quick } of [COMPILED_UNASKED, READ_SLOWLY]) {
            build.onLoad({ filter }, ({ path }) => ({
              contents: readFileSync(path, "utf8").replace(call, quick),
            }));
          }
        },
      },
      {
        name: "apart",
        setup(build) {
          build.onResolve({ filter: /^[^./]/ }, async (found) => {
            if (found.pluginData === "asked" || found.kind === "entry-point") return undefined;
            if (isApart.has(found.path) || LEFT_ALONE.has(found.path))
              return { path: found.path, external: true };
            const { path: name, kind, resolveDir, importer } = found;
            const answer = await build.resolve(name, {
              kind,
              resolveDir,
              importer,
              pluginData: "asked",
            });
            // A driver or helper that is not installed: asked for only by who uses it.
            return answer.errors.length > 0 ? { path: name, external: true } : answer;
          });
        },
      },
    ],
  };
}

function writeManifests(draft, entries) {
  // Parts that ES modules share: without a word about them Node has to find out what they are.
  const shared = join(draft, ".shared");
  if (existsSync(shared)) writeFileSync(join(shared, "package.json"), '{"type":"module"}\n');
  for (const name of new Set(entries.map((entry) => entry.name))) {
    const own = entries.filter((entry) => entry.name === name);
    const exports = Object.fromEntries(
      own.map(({ subpath, out, isModule }) => [
        subpath === "" ? "." : `./${subpath}`,
        isModule ? `./${out}.js` : { import: `./${out}.mjs`, default: `./${out}.cjs` },
      ]),
    );
    mkdirSync(join(draft, name), { recursive: true });
    const { version, license } = JSON.parse(
      readFileSync(join(ROOT, "node_modules", name, "package.json"), "utf8"),
    );
    const manifest = {
      name,
      version,
      license,
      type: own[0].isModule ? "module" : "commonjs",
      exports,
    };
    writeFileSync(join(draft, name, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  }
}
