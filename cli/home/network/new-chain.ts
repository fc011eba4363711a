/**
 * What the chain of a new home is made of, kept from before its first key until its genesis is written.
 * That cannot be changed: an init that was cut off is completed with the values that it began with, or not
 * at all.
 */
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { BLOCK_INTERVAL_MS } from "../../../chain/networks.js";
import {
  firstModuleParams,
  type ModuleParams,
  moduleParamTexts,
  parseModuleParams,
} from "../../../node/settings/module-params.js";
import { CliError, fileCause, systemCode } from "../../errors.js";
import { createFileOnce, PLAIN_MODE } from "../home-file.js";
import { type HomePaths, inHome } from "../home.js";

/** What genesis says for ever. */
export interface NewChain {
  /** Time between blocks. */
  readonly blockIntervalMs: number;
  readonly validators: number;
  readonly modules: ModuleParams;
}

/** What an init is asked for; the rest is as it was begun with, or as every chain has it. */
export interface WantedChain {
  readonly blockIntervalMs?: number | undefined;
  readonly validators: number;
  readonly modules?: ModuleParams | undefined;
}

/**
 * What an init that was cut off is to be completed with; undefined where none was.
 * @throws HOME_UNUSABLE for a file that cannot be read, HOME_INCOMPLETE for one that says nothing
 */
export function readNewChain(paths: HomePaths): NewChain | undefined {
  let text: string;
  try {
    text = readFileSync(paths.newChain, "utf8");
  } catch (cause) {
    if (systemCode(cause) === "ENOENT") return undefined;
    const message = `Cannot read ${paths.newChain}: ${fileCause(cause)}.`;
    throw new CliError("HOME_UNUSABLE", message, { cause });
  }
  try {
    return parseNewChain(JSON.parse(text));
  } catch (cause) {
    const message =
      `${paths.newChain} does not say what the chain of this home is to be made of: delete it, and ` +
      "give the flags of the first start again, which was cut off.";
    throw new CliError("HOME_INCOMPLETE", message, { cause });
  }
}

/** By hand: `causeway status` reads how many validators there are, and has to start at once. */
function parseNewChain(value: unknown): NewChain {
  if (typeof value !== "object" || value === null) throw new TypeError("it is no object");
  const read = (name: string): unknown => Reflect.get(value, name);
  const positive = (name: string): number => {
    const number = read(name);
    if (typeof number === "number" && Number.isSafeInteger(number) && number > 0) return number;
    throw new TypeError(`${name} is no positive whole number`);
  };
  const texts = Object.entries(Object(read("modules")));
  const named = texts.map(([name, text]) => {
    if (typeof text !== "string") throw new TypeError(`modules.${name} is no text`);
    return [name, text] as const;
  });
  return {
    blockIntervalMs: positive("blockIntervalMs"),
    validators: positive("validators"),
    modules: parseModuleParams(Object.fromEntries(named)),
  };
}

/**
 * What the chain is made of from now on: what an init that was cut off began with, else what is wanted.
 * @throws HOME_EXISTS where another chain is wanted than was begun; HOME_UNUSABLE, HOME_INCOMPLETE
 */
export async function keepNewChain(paths: HomePaths, wanted: WantedChain): Promise<NewChain> {
  const begun = readNewChain(paths);
  if (begun !== undefined) {
    assertSame(paths, begun, wanted);
    return begun;
  }
  const { validators } = wanted;
  const { blockIntervalMs = BLOCK_INTERVAL_MS, modules = firstModuleParams() } = wanted;
  const record = { blockIntervalMs, validators, modules: moduleParamTexts(modules) };
  await createFileOnce(paths.newChain, `${JSON.stringify(record, null, 2)}\n`, PLAIN_MODE);
  return { blockIntervalMs, validators, modules };
}

/**
 * Genesis has it all.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function forgetNewChain(paths: HomePaths): Promise<void> {
  await inHome(paths.config, () => rm(paths.newChain, { force: true }));
}

function assertSame(paths: HomePaths, begun: NewChain, wanted: WantedChain): void {
  const given = flagsOf(wanted);
  const others = flagsOf(begun).filter(([flag, value]) => {
    return given.some(([name, text]) => name === flag && text !== value);
  });
  if (others.length === 0) return;
  const flags = others.map(([flag, value]) => `${flag}=${value}`).join(" ");
  const message =
    `The first start of ${paths.home} was cut off, and its chain has begun with ${flags}: give the ` +
    "flags that it had, or none; another chain needs another --home.";
  throw new CliError("HOME_EXISTS", message);
}

/** Flags with their values, as a person gives them; the number of validators is the home's own. */
function flagsOf({
  blockIntervalMs,
  modules,
}: WantedChain): readonly (readonly [string, string])[] {
  const interval =
    blockIntervalMs === undefined ? [] : [["--block-interval-ms", `${blockIntervalMs}`] as const];
  const params = modules === undefined ? [] : Object.entries(moduleParamTexts(modules));
  return [...interval, ...params.map(([name, text]) => [`--param ${name}`, text] as const)];
}
