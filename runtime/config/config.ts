/** Settings: one schema per file; flags, environment and TOML read once, all faults at once. */
import { join } from "node:path";
import { AppError } from "../../chain/errors.js";
import { joinKey, readTomlLeaves, showValue, wrapComment } from "./config-toml.js";
import {
  InvalidValueError,
  type ListenAddress,
  formatListenAddress,
  parseListenAddress,
  parseUrl,
  parseWholeNumber,
  shiftAddressPort,
  shiftUrlPort,
  type TextRule,
  tomlString,
} from "./config-values.js";
import { type ForeignKeys, judgeForeignKey, type NeutralValues } from "./foreign-keys.js";
import { kubernetesVariables } from "./kubernetes-variables.js";

/** Environment variables as the process got them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The only place that reads `process.env`; entries pass the result on. */
export function processEnvironment(): Environment {
  return process.env;
}

/** One setting: how it is read, written and explained. Made by `field`. */
export interface Field<T> {
  readonly defaultValue: T;
  readonly help: string;
  /** Unit of a number, for example "ms" or "bytes". */
  readonly unit: string | undefined;
  /** What is allowed, for people. */
  readonly allowed: string;
  readonly isSecret: boolean;
  /** Reads a TOML value or the text of a flag or variable. @throws InvalidValueError */
  parse(raw: unknown): T;
  /** The value as a TOML literal. */
  format(value: T): string;
  /** Moves the port inside the value, for settings that have one. */
  shift?(value: T, portOffset: number): T;
}

/** Sections of a file; "" holds the keys above the first table. Keys are written as in TOML. */
export type Sections = Readonly<Record<string, Readonly<Record<string, Field<unknown>>>>>;

/** Values of sections, by section and key as written in the TOML. */
export type ValuesOf<S> = {
  readonly [Section in keyof S]: {
    readonly [Key in keyof S[Section]]: S[Section][Key] extends Field<infer T> ? T : never;
  };
};

/** Schema of one settings file `<home>/config/<name>.toml`. Made by `defineConfigFile`. */
export interface ConfigFile<S extends Sections = Sections> extends ForeignKeys {
  readonly name: string;
  readonly sections: S;
  /** Faults of values that are right one by one and wrong together. */
  combinationFaults(values: ValuesOf<S>): readonly Omit<ConfigFault, "file">[];
}

/** Values of a file, frozen, by section and key as written in the TOML. */
export type ConfigOf<F> = F extends ConfigFile<infer S> ? ValuesOf<S> : never;

/** One wrong setting. */
export interface ConfigFault {
  /** Path of the file, "environment" or "flag". */
  readonly file: string;
  /** "section.key", or the variable's or flag's name. */
  readonly key: string;
  /** The value as written; `***` for secrets. */
  readonly value: string;
  readonly allowed: string;
}

/** Wrong settings; `faults` lists every one, the message has one line for each. */
export class ConfigError extends AppError<"INVALID_CONFIG"> {
  readonly faults: readonly ConfigFault[];

  constructor(faults: readonly ConfigFault[]) {
    const lines = faults.map(
      (fault) => `  ${fault.file}: ${fault.key} = ${fault.value} (allowed: ${fault.allowed})`,
    );
    super("INVALID_CONFIG", `settings are wrong:\n${lines.join("\n")}`, { details: { faults } });
    this.faults = faults;
  }
}

/** What every field may be told. */
export interface FieldOptions<T> {
  readonly default: T;
  /** One or more plain sentences; written above the key in the file. */
  readonly help: string;
  /** True hides the value in faults and logs. */
  readonly secret?: boolean;
}

/** Options of a whole number. */
export interface IntegerOptions<T> extends FieldOptions<T> {
  readonly min: T;
  readonly max: T;
  readonly unit?: string;
}

/** Makers of fields, one per kind of value. */
export const field = {
  /** Text of at most 4,096 characters; `pattern` with `allowed` (its meaning in words) narrows it. */
  string(
    options: FieldOptions<string> & { readonly pattern?: TextRule; readonly allowed?: string },
  ): Field<string> {
    const allowed = options.allowed ?? "text of at most 4096 characters";
    return makeField(options, {
      allowed,
      parse: (raw) =>
        typeof raw === "string" && raw.length <= 4096 && (options.pattern?.test(raw) ?? true)
          ? raw
          : refuse(allowed),
      format: tomlString,
    });
  },

  /** One of a fixed list of words. */
  choice<const W extends string>(
    options: FieldOptions<W> & { readonly values: readonly W[] },
  ): Field<W> {
    const allowed = `one of ${options.values.map((word) => `"${word}"`).join(", ")}`;
    return makeField<W>(options, {
      allowed,
      parse: (raw) => options.values.find((word) => word === raw) ?? refuse(allowed),
      format: tomlString,
    });
  },

  /** Whole number within safe-integer range. */
  integer(options: IntegerOptions<number>): Field<number> {
    const allowed = `a whole number from ${options.min} to ${options.max}`;
    return makeField(options, {
      allowed,
      unit: options.unit,
      parse(raw) {
        const value = Number(parseWholeNumber(raw));
        return value >= options.min && value <= options.max ? value : refuse(allowed);
      },
      format: String,
    });
  },

  /** Whole number of any size, such as an amount of atoken; TOML integer or decimal string. */
  bigint(options: IntegerOptions<bigint>): Field<bigint> {
    const allowed = `a whole number from ${options.min} to ${options.max}`;
    return makeField(options, {
      allowed,
      unit: options.unit,
      parse(raw) {
        const value = parseWholeNumber(raw);
        return value >= options.min && value <= options.max ? value : refuse(allowed);
      },
      // TOML integers end at 64 bits, so larger ones are written as strings.
      format: (value) => (value < 2n ** 53n ? String(value) : tomlString(String(value))),
    });
  },

  /** true or false. */
  boolean(options: FieldOptions<boolean>): Field<boolean> {
    return makeField(options, {
      allowed: "true or false",
      parse(raw) {
        if (raw === true || raw === "true") return true;
        return raw === false || raw === "false" ? false : refuse("true or false");
      },
      format: String,
    });
  },

  /** List of texts: a TOML array or one comma-separated string (CometBFT's form). */
  list(
    options: FieldOptions<readonly string[]> & {
      /** How the file is written; default "array". Both forms are read. */
      readonly style?: "array" | "comma";
      readonly pattern?: TextRule;
      readonly allowed?: string;
    },
  ): Field<readonly string[]> {
    const allowed = options.allowed ?? "a list of texts";
    return makeField<readonly string[]>(options, {
      allowed,
      parse(raw) {
        const items = typeof raw === "string" ? splitCommas(raw) : raw;
        if (!Array.isArray(items) || !items.every((item) => typeof item === "string")) {
          return refuse(allowed);
        }
        const isFitting = items.every((item) => options.pattern?.test(item) ?? true);
        return isFitting ? Object.freeze(items) : refuse(allowed);
      },
      format: (value) =>
        options.style === "comma"
          ? tomlString(value.join(","))
          : `[${value.map(tomlString).join(", ")}]`,
    });
  },

  /**
   * Host and port to listen on, written "host:port" (`scheme` such as "tcp://" goes in front of
   * what is written; it is optional when read). Its port moves with the port offset.
   */
  listenAddress(
    options: FieldOptions<string> & { readonly scheme?: string },
  ): Field<ListenAddress> {
    const allowed = 'host:port, for example "127.0.0.1:8080"';
    return makeField(
      { ...options, default: parseListenAddress(options.default) },
      {
        allowed,
        parse: (raw) => (typeof raw === "string" ? parseListenAddress(raw) : refuse(allowed)),
        format: (value) => tomlString(formatListenAddress(value, options.scheme)),
        shift: shiftAddressPort,
      },
    );
  },

  /**
   * Absolute URL of one of `schemes` (default http and https). An empty default makes the setting
   * optional. The explicit port of a loopback URL moves with the port offset.
   */
  url(options: FieldOptions<string> & { readonly schemes?: readonly string[] }): Field<string> {
    const schemes = options.schemes ?? ["http", "https"];
    const isOptional = options.default === "";
    const rest = schemes.includes("ws") ? ", without #" : "";
    const start = `a URL starting with ${schemes.join(":// or ")}://${rest}`;
    const allowed = isOptional ? `${start}, or empty` : start;
    return makeField(options, {
      allowed,
      parse(raw) {
        if (typeof raw !== "string") return refuse(allowed);
        return isOptional && raw === "" ? raw : parseUrl(raw, schemes);
      },
      format: tomlString,
      shift: shiftUrlPort,
    });
  },
} as const;

/** Reserved key that tells which port offset the ports of a file already contain. */
const OFFSET_KEY = "port-offset";

/** Highest offset that leaves every default port (up to 26660) within 65535. */
export const MAX_PORT_OFFSET = 38_000;

/**
 * Declares one settings file. Every key is also `CAUSEWAY_<FILE>_<SECTION>_<KEY>` (upper case, `-`
 * and `.` become `_`; no section part for keys of the section "").
 */
export function defineConfigFile<const S extends Sections>(
  name: string,
  sections: S,
  options: {
    readonly inertKeys?: readonly string[];
    readonly neutralValues?: NeutralValues;
    readonly combinationFaults?: ConfigFile<S>["combinationFaults"];
  } = {},
): ConfigFile<S> {
  const { inertKeys = [], neutralValues = {}, combinationFaults = () => [] } = options;
  const foreign = { inertKeys: new Set(inertKeys), neutralValues };
  return Object.freeze({ name, sections, ...foreign, combinationFaults });
}

/** Where settings come from. */
export interface ConfigSources {
  /** Home folder; the file is `<home>/config/<name>.toml`. Without the file, defaults hold. */
  readonly home: string;
  readonly env: Environment;
  /** Command-line values by "section.key" (or "key" for the section ""); strongest of all. */
  readonly flags?: Readonly<Record<string, string | undefined>>;
  /**
   * Port offset of this run. Ports that still stand at their default (plus the offset the file was
   * written with) move to default + this; edited ones stay. Without it, ports are as in the file.
   */
  readonly portOffset?: number;
  /** Told of keys that are known but have no effect here. */
  readonly onWarning?: (message: string) => void;
}

/**
 * Reads, checks and freezes the settings of one file: flag > environment > file > default.
 * @throws ConfigError with all faults, unknown keys and variables included
 */
export function loadConfig<F extends ConfigFile>(sources: ConfigSources, file: F): ConfigOf<F> {
  const { values, faults } = readConfig(sources, file);
  if (faults.length > 0) throw new ConfigError(faults);
  return values;
}

/** The same, with its faults beside it: what is wrong stands at its default. */
export function readConfig<F extends ConfigFile>(
  sources: ConfigSources,
  file: F,
): { readonly values: ConfigOf<F>; readonly faults: readonly ConfigFault[] } {
  const path = join(sources.home, "config", `${file.name}.toml`);
  const faults: ConfigFault[] = [];
  const { leaves: table, expected } = readTomlLeaves(path);
  if (expected !== undefined) {
    faults.push({ file: path, key: "(whole file)", value: "unreadable", allowed: expected });
  }
  const fileOffset = fileOffsetOf(table.get(OFFSET_KEY), path, faults);
  const reader = { sources, file, path, table, fileOffset, faults };
  const result: Record<string, Record<string, unknown>> = {};
  for (const [section, fields] of Object.entries(file.sections)) {
    const values: Record<string, unknown> = {};
    for (const [key, setting] of Object.entries(fields)) {
      values[key] = readSetting(reader, joinKey(section, key), setting);
    }
    result[section] = Object.freeze(values);
  }
  reportUnknown(reader);
  const values = Object.freeze(result) as ConfigOf<F>;
  for (const fault of file.combinationFaults(values)) {
    // What cannot be read at all has been reported, and stands at its default here.
    if (!faults.some(({ key }) => key === fault.key)) faults.push({ file: path, ...fault });
  }
  return { values, faults };
}

/** Values that `renderToml` writes instead of the defaults, by section and key. */
export type ConfigOverrides<F> = {
  readonly [Section in keyof ConfigOf<F>]?: Partial<ConfigOf<F>[Section]>;
};

/**
 * The whole file with every key, its help, unit, what is allowed and the variable's name. Default
 * ports are written with `portOffset` added; overridden values are written as given.
 */
export function renderToml<F extends ConfigFile>(
  file: F,
  overrides: ConfigOverrides<F> = {},
  options: { readonly portOffset?: number } = {},
): string {
  const portOffset = options.portOffset ?? 0;
  const chosen: Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>> = overrides;
  const lines = [
    `# ${file.name}.toml: written once when the home was made; edit freely.`,
    "# A flag is stronger than an environment variable, which is stronger than this file.",
    "",
    "# Already contained in the ports below: a start with another --port-offset moves every port",
    "# that still stands at its default.",
    `${OFFSET_KEY} = ${portOffset}`,
  ];
  // Keys above the first table must come first, whatever the order of declaration.
  const sections = Object.entries(file.sections).toSorted(
    ([left], [right]) => Number(left !== "") - Number(right !== ""),
  );
  for (const [section, fields] of sections) {
    if (section !== "") {
      lines.push("", `[${section}]`);
    }
    for (const [key, setting] of Object.entries(fields)) {
      const shifted = setting.shift?.(setting.defaultValue, portOffset) ?? setting.defaultValue;
      const value = chosen[section]?.[key] ?? shifted;
      const unit = setting.unit === undefined ? "" : ` (${setting.unit})`;
      lines.push(
        "",
        ...setting.help.split("\n").flatMap(wrapComment),
        ...wrapComment(`Allowed: ${setting.allowed}${unit}.`),
        `# Variable: ${environmentName(file.name, joinKey(section, key))}`,
        `${key} = ${setting.format(value)}`,
      );
    }
  }
  return `${lines.join("\n")}\n`;
}

/** Variable of a setting: ("worker", "gas.price-cap-atoken") -> CAUSEWAY_WORKER_GAS_PRICE_CAP_ATOKEN. */
export function environmentName(fileName: string, dottedKey: string): string {
  return `CAUSEWAY_${fileName}_${dottedKey}`.toUpperCase().replace(/[-.]/g, "_");
}

/**
 * Port offset that the home's files were written with; 0 without a file that says so.
 * @param fileNames files to look into, first answer wins
 */
export function readPortOffset(home: string, fileNames: readonly string[]): number {
  for (const fileName of fileNames) {
    const { leaves } = readTomlLeaves(join(home, "config", `${fileName}.toml`));
    const value = leaves.get(OFFSET_KEY);
    if (value !== undefined) return fileOffsetOf(value, fileName, []);
  }
  return 0;
}

/** Everything that reading one setting needs. */
interface SettingReader {
  readonly sources: ConfigSources;
  readonly file: ConfigFile;
  readonly path: string;
  /** Leaf values of the file by dotted key. */
  readonly table: ReadonlyMap<string, unknown>;
  readonly fileOffset: number;
  readonly faults: ConfigFault[];
}

function readSetting(reader: SettingReader, dottedKey: string, setting: Field<unknown>): unknown {
  const { sources, file } = reader;
  const variable = environmentName(file.name, dottedKey);
  const candidates = [
    { file: "flag", key: `--${dottedKey}`, raw: sources.flags?.[dottedKey] },
    { file: "environment", key: variable, raw: sources.env[variable] },
    { file: reader.path, key: dottedKey, raw: reader.table.get(dottedKey) },
  ];
  const found = candidates.find((candidate) => candidate.raw !== undefined);
  const portOffset = sources.portOffset ?? reader.fileOffset;
  const shiftedDefault = setting.shift?.(setting.defaultValue, portOffset) ?? setting.defaultValue;
  if (found === undefined) return shiftedDefault;
  try {
    const value = setting.parse(found.raw);
    const isFromFile = found.file === reader.path;
    return isFromFile && isAtDefault(setting, value, reader.fileOffset) ? shiftedDefault : value;
  } catch (error) {
    if (!(error instanceof InvalidValueError)) throw error;
    reader.faults.push({
      file: found.file,
      key: found.key,
      value: setting.isSecret ? "***" : showValue(found.raw),
      allowed: setting.allowed,
    });
    return shiftedDefault;
  }
}

/** True when a file's value has a port and it was never edited. */
function isAtDefault(setting: Field<unknown>, value: unknown, fileOffset: number): boolean {
  if (setting.shift === undefined) return false;
  const written = setting.shift(setting.defaultValue, fileOffset);
  return setting.format(value) === setting.format(written);
}

/** Faults for keys, variables and flags that no setting of the file has. */
function reportUnknown(reader: SettingReader): void {
  const { file, faults, sources } = reader;
  const known = Object.entries(file.sections).flatMap(([section, fields]) =>
    Object.keys(fields).map((key) => joinKey(section, key)),
  );
  const knownKeys = new Set([...known, OFFSET_KEY]);
  for (const [key, raw] of reader.table) {
    if (knownKeys.has(key)) continue;
    const verdict = judgeForeignKey(file, key, raw);
    if (verdict === "inert") sources.onWarning?.(`${reader.path}: ${key} has no effect here`);
    else if (verdict !== "neutral") {
      faults.push({ file: reader.path, key, value: showValue(raw), ...verdict });
    }
  }
  const prefix = environmentName(file.name, "");
  const variables = new Set(known.map((key) => environmentName(file.name, key)));
  const ofKubernetes = kubernetesVariables(sources.env);
  for (const [name, value] of Object.entries(sources.env)) {
    const isKnown = variables.has(name) || ofKubernetes.has(name);
    if (name.startsWith(prefix) && !isKnown && value !== undefined) {
      faults.push({ file: "environment", key: name, value: "***", allowed: "no such setting" });
    }
  }
  for (const [key, value] of Object.entries(sources.flags ?? {})) {
    if (!knownKeys.has(key) && value !== undefined) {
      faults.push({ file: "flag", key: `--${key}`, value, allowed: "no such setting" });
    }
  }
}

function fileOffsetOf(raw: unknown, path: string, faults: ConfigFault[]): number {
  if (raw === undefined) return 0;
  const offset = typeof raw === "bigint" ? Number(raw) : Number.NaN;
  if (offset >= 0 && offset <= MAX_PORT_OFFSET) return offset;
  const allowed = `a whole number from 0 to ${MAX_PORT_OFFSET}`;
  faults.push({ file: path, key: OFFSET_KEY, value: showValue(raw), allowed });
  return 0;
}

/** Fills in what all kinds of fields share. */
function makeField<T>(
  options: FieldOptions<T>,
  kind: Pick<Field<T>, "allowed" | "parse" | "format" | "shift"> & { readonly unit?: string },
): Field<T> {
  return Object.freeze({
    ...kind,
    unit: kind.unit,
    defaultValue: options.default,
    help: options.help,
    isSecret: options.secret ?? false,
  });
}

function refuse(allowed: string): never {
  throw new InvalidValueError(`expected ${allowed}`);
}

function splitCommas(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}
