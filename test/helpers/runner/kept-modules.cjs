/**
 * The product's modules and its packages, loaded once per worker into the realm of the process, as in
 * production: jest alone would link, compile and warm up all of them anew for each of some 700 test files.
 */
const { existsSync } = require("node:fs");
const { isBuiltin, syncBuiltinESMExports } = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { SourceTextModule, SyntheticModule } = require("node:vm");

const ROOT = path.resolve(__dirname, "..", "..", "..");

/** Folders below the project whose modules are no product. */
const OTHERS = new Set(["test", "node_modules", ".cache", ".causeway", "dist"]);

/** Modules by path or name, with the promise of their evaluation. */
const kept = new Map();

/** What jest's transformer made of each file, for the stacks of errors. */
const transformed = new Map();

/** Whether a file is of the product. */
function isProduct(file) {
  const [folder, ...rest] = path.relative(ROOT, file).split(path.sep);
  return file.endsWith(".ts") && rest.length > 0 && folder !== ".." && !OTHERS.has(folder);
}

/** The evaluated module; forgotten again where it cannot be loaded. */
function keep(key, load) {
  let module = kept.get(key);
  if (module === undefined) {
    module = load();
    kept.set(key, module);
    module.catch(() => kept.delete(key));
  }
  return module;
}

/**
 * A file of the product. Modules that import each other in a circle would wait for ever; a test of the
 * architecture allows none.
 * @param transform code of a file for this version of Node, and what is known of its source
 */
function keepProduct(file, transform) {
  return keep(file, async () => {
    const { code, entry } = transform(file);
    transformed.set(file, entry);
    const url = pathToFileURL(file).href;
    const load = (specifier) => keepImported(specifier, file, transform);
    const module = new SourceTextModule(code, {
      identifier: file,
      initializeImportMeta(meta) {
        Object.assign(meta, { url, filename: file, dirname: path.dirname(file) });
      },
      importModuleDynamically: load,
    });
    await module.link(load);
    await module.evaluate();
    return module;
  });
}

/** What a file of the product imports. */
function keepImported(specifier, from, transform) {
  if (!specifier.startsWith(".")) return keepPackage(specifier);
  const named = path.resolve(path.dirname(from), specifier);
  const source = named.replace(/\.js$/, ".ts");
  return existsSync(source) ? keepProduct(source, transform) : keepPackage(named);
}

/** One after the other: a CommonJS package that requires an ES module finds it loaded, or not begun. */
let importing = Promise.resolve();

function importNext(name) {
  const imported = importing.then(() => import(name));
  importing = imported.catch(() => undefined);
  return imported;
}

/** The check of API files themselves, which the validator makes for each server. */
const API_CHECK = "express-openapi-validator/dist/framework/openapi.schema.validator.js";

/** What of the validator follows references in API files. */
const API_REFERENCES = "express-openapi-validator/dist/middlewares/parsers/schema.preprocessor.js";

/**
 * What is done before a package is loaded. Nobody but a test asks for the check of API files, and the build
 * leaves it out (`bin/setup/packages.mjs`): here it is made when it is asked for. References are followed as the
 * build has it, too. Each of some thousand servers of the tests spent half a second on both.
 */
const BEFORE = {
  "express-openapi-validator": () => {
    const exported = require(API_CHECK);
    const Check = exported.OpenAPISchemaValidator;
    exported.OpenAPISchemaValidator = class {
      #options;
      constructor(options) {
        this.#options = options;
      }
      validate(document) {
        return new Check(this.#options).validate(document);
      }
    };
    const { SchemaPreprocessor } = require(API_REFERENCES);
    const follow = SchemaPreprocessor.prototype.resolveSchema;
    SchemaPreprocessor.prototype.resolveSchema = function resolve(schema) {
      const compiling = this.ajv;
      this.ajv = { getSchema: () => undefined };
      try {
        return follow.call(this, schema);
      } finally {
        this.ajv = compiling;
      }
    };
  },
};

/** A package by its name or a file of it by its path, or a module of Node's own, as Node loads them. */
function keepPackage(name) {
  return keep(name, async () => {
    const isName = isBuiltin(name) || !path.isAbsolute(name);
    BEFORE[name]?.();
    const exported = await importNext(isName ? name : pathToFileURL(name).href);
    const names = Object.keys(exported);
    const module = new SyntheticModule(
      names,
      function fill() {
        for (const each of names) this.setExport(each, exported[each]);
      },
      { identifier: name },
    );
    await module.link(() => undefined);
    await module.evaluate();
    return module;
  });
}

/** Gives the product what Node's own modules export now: for whoever has put something in place of it. */
async function readBuiltinsAnew() {
  syncBuiltinESMExports();
  for (const [name, promise] of kept) {
    if (!isBuiltin(name)) continue;
    const module = await promise;
    for (const [each, value] of Object.entries(await import(name))) module.setExport(each, value);
  }
}

module.exports = { isProduct, keepPackage, keepProduct, readBuiltinsAnew, transformed };
