/** Untrusted text of a policy file to a policy; all faults are found at once. */
import { type Address, parseStrictAddress } from "../../chain/address.js";
import { isAnybodysKey } from "../../chain/consensus/ed25519.js";
import { parseEditedJson } from "../../chain/encoding/edited-json.js";
import { errorMessage } from "../../chain/errors.js";
import { MAX_ATOKEN } from "../../chain/units.js";
import type { ConfigFault } from "../../runtime/config/config.js";
import { withoutAccess } from "../../runtime/config/config-toml.js";
import { isUrl } from "../../runtime/config/config-values.js";
import {
  type ApprovalRule,
  type Approver,
  type AssetRules,
  type Limit,
  LIMIT_SUBJECTS,
  type Policy,
  type Screening,
  type TreasuryAsset,
  type TreasuryBand,
  type TreasuryRules,
} from "./policy.js";

/** One wrong term. */
export type PolicyFault = Omit<ConfigFault, "file">;

/** What a text came to: a policy, or everything that is wrong with it. */
export type ParsedPolicy =
  | { readonly policy: Policy; readonly faults: readonly [] }
  | { readonly policy: undefined; readonly faults: readonly PolicyFault[] };

/** Entries of one list or table in the file: more is a mistake, or wants another tool. */
const MAX_ENTRIES = 10_000;

/** Rules of one kind for one asset; each limit is a sum for each request. */
const MAX_RULES = 16;

const MAX_APPROVALS = 16;
const MAX_DELAY_HOURS = 24 * 365;
const MAX_WINDOW_SECONDS = 31 * 86_400;
const MAX_SHOWN_CHARACTERS = 80;

const ASSET_PATTERN = /^(\*|[A-Za-z0-9_.:-]{1,64})$/;
const SYMBOL_PATTERN = /^[A-Za-z0-9_.:-]{1,32}$/;
const CUSTOMER_PATTERN = /^[A-Za-z0-9_.:-]{1,64}$/;
const UNITS_PATTERN = /^(0|[1-9][0-9]{0,77})$/;
const NAME_PATTERN = /^[\x20-\x7e]{1,64}$/;
const PUBLIC_KEY_PATTERN = /^[0-9a-f]{64}$/;
const URL_PATTERN = /^https?:\/\/\S{1,2000}$/;
const WINDOW_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** What is left out is not guessed at. */
const EVERY_TERM = "every term is written";

/** Reads a policy file's text. */
export function parsePolicy(text: string): ParsedPolicy {
  const reader = new Reader();
  let value: unknown;
  try {
    value = parseEditedJson(text);
  } catch (error) {
    const key = "(whole file)";
    return { policy: undefined, faults: [{ key, value: errorMessage(error), allowed: "JSON" }] };
  }
  const policy = reader.policy(value);
  const faults = [...reader.faults, ...doubledTerms(text)];
  return faults.length === 0 ? { policy, faults: [] } : { policy: undefined, faults };
}

/** Strings, names with their colon, and where objects and lists begin and end. */
const JSON_PART = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\]]/gs;

/** The first term that well-formed JSON writes twice in one object: of both `JSON.parse` keeps the last. */
function doubledTerms(text: string): readonly PolicyFault[] {
  const open: Set<string>[] = [];
  for (const [part, colon] of text.matchAll(JSON_PART)) {
    if (part === "{" || part === "[") open.push(new Set());
    else if (part === "}" || part === "]") open.pop();
    else if (colon !== undefined) {
      const name = String(JSON.parse(part.slice(0, -colon.length)));
      const names = open.at(-1);
      if (names?.has(name) === true) {
        return [{ key: name, value: "written twice", allowed: "each term once" }];
      }
      names?.add(name);
    }
  }
  return [];
}

type Fields = Readonly<Record<string, unknown>>;

/** Goes on after a fault with a harmless value, so that the others are found too. */
class Reader {
  readonly faults: PolicyFault[] = [];
  /** Terms that are left out: where their faults are, until it is known what should stand there. */
  readonly #missing = new Map<string, number>();
  /** Terms of what is no object: they are told with it. */
  readonly #untold = new Set<string>();

  policy(value: unknown): Policy {
    const names = ["format", "assets", "allowList", "approvers", "screening"];
    const hasTreasury = typeof value === "object" && value !== null && "treasury" in value;
    const fields = this.fields(value, "", hasTreasury ? [...names, "treasury"] : names);
    const treasury = hasTreasury && fields["treasury"] !== null;
    if (fields["format"] !== 1) this.fault("format", fields["format"], "1");
    return {
      assets: this.table(fields["assets"], "assets", ASSET_PATTERN, (rules, key) =>
        this.assetRules(rules, key),
      ),
      allowList: this.allowList(fields["allowList"]),
      approvers: this.list(fields["approvers"], "approvers", MAX_ENTRIES, (item, key) =>
        this.approver(item, key),
      ),
      screening: fields["screening"] === null ? undefined : this.screening(fields["screening"]),
      ...(treasury && { treasury: this.treasury(fields["treasury"]) }),
    };
  }

  private assetRules(value: unknown, at: string): AssetRules {
    const names = [
      "minimumUnits",
      "maximumUnits",
      "feeUnits",
      "signerDayMaxUnits",
      "limits",
      "approvals",
    ];
    const fields = this.fields(value, at, names);
    const units = (name: string) => this.units(fields[name], `${at}.${name}`);
    const optional = (name: string) => this.optionalUnits(fields[name], `${at}.${name}`);
    const approvals = this.list(fields["approvals"], `${at}.approvals`, MAX_RULES, (item, key) =>
      this.approvalRule(item, key),
    );
    approvals.forEach((rule, index) => {
      const before = approvals[index - 1];
      if (before === undefined) return;
      const places = [index - 1, index].map((place) => `${at}.approvals[${place}].aboveUnits`);
      if (this.isTold(...places)) return;
      const asksNoLess = rule.needed >= before.needed && (rule.signed || !before.signed);
      if (rule.aboveUnits > before.aboveUnits && asksNoLess) return;
      const allowed =
        "larger amounts behind smaller ones, no fewer approvals for them, and signed ones as before";
      this.fault(`${at}.approvals[${index}]`, rule.aboveUnits.toString(), allowed);
    });
    return {
      minimumUnits: units("minimumUnits"),
      maximumUnits: optional("maximumUnits"),
      feeUnits: units("feeUnits"),
      signerDayMaxUnits: optional("signerDayMaxUnits"),
      limits: this.list(fields["limits"], `${at}.limits`, MAX_RULES, (item, key) =>
        this.limit(item, key),
      ),
      approvals,
    };
  }

  private treasury(value: unknown): TreasuryRules {
    const fields = this.fields(value, "treasury", ["topUpMaxAtoken", "assets"]);
    return {
      topUpMaxAtoken: this.units(fields["topUpMaxAtoken"], "treasury.topUpMaxAtoken"),
      assets: this.table(fields["assets"], "treasury.assets", SYMBOL_PATTERN, (rules, key) =>
        this.treasuryAsset(rules, key),
      ),
    };
  }

  private treasuryAsset(value: unknown, at: string): TreasuryAsset {
    const names = ["sweepMinimumUnits", "sweepFeeMaxAtoken", "coldAddress", "band"];
    const fields = this.fields(value, at, names);
    const units = (name: string) => this.units(fields[name], `${at}.${name}`);
    const { coldAddress, band } = fields;
    return {
      sweepMinimumUnits: units("sweepMinimumUnits"),
      sweepFeeMaxAtoken: units("sweepFeeMaxAtoken"),
      coldAddress:
        coldAddress === null ? undefined : this.address(coldAddress, `${at}.coldAddress`),
      band: band === null ? undefined : this.band(band, `${at}.band`),
    };
  }

  private band(value: unknown, at: string): TreasuryBand {
    const names = ["lowUnits", "targetUnits", "highUnits"];
    const fields = this.fields(value, at, names);
    const units = (name: string) => this.units(fields[name], `${at}.${name}`);
    const band = {
      lowUnits: units("lowUnits"),
      targetUnits: units("targetUnits"),
      highUnits: units("highUnits"),
    };
    const isInOrder = band.lowUnits <= band.targetUnits && band.targetUnits < band.highUnits;
    if (isInOrder || this.isTold(at, ...names.map((name) => `${at}.${name}`))) return band;
    this.fault(at, value, "lowUnits at most targetUnits, and both below highUnits");
    return band;
  }

  private limit(value: unknown, at: string): Limit {
    const fields = this.fields(value, at, ["by", "window", "maxUnits", "maxCount"]);
    const by = LIMIT_SUBJECTS.find((subject) => subject === fields["by"]);
    if (by === undefined) this.fault(`${at}.by`, fields["by"], `one of ${LIMIT_SUBJECTS.join()}`);
    const { maxUnits, maxCount } = fields;
    if (maxUnits === null && maxCount === null) {
      this.fault(at, value, "a maxUnits, a maxCount or both");
    }
    return {
      by: by ?? "customer",
      window: this.window(fields["window"], `${at}.window`),
      maxUnits: this.optionalUnits(maxUnits, `${at}.maxUnits`),
      maxCount:
        maxCount === null
          ? undefined
          : this.integer(maxCount, `${at}.maxCount`, { min: 0, max: 1_000_000_000 }),
    };
  }

  private window(value: unknown, at: string): Limit["window"] {
    if (value === "day") return value;
    const length = typeof value === "string" ? value : "";
    const [, count, unit] = /^([1-9][0-9]{0,6})([smhd])$/.exec(length) ?? [];
    const seconds = Number(count) * (WINDOW_SECONDS[unit ?? ""] ?? Number.NaN);
    if (seconds <= MAX_WINDOW_SECONDS) return seconds;
    this.fault(at, value, '"day" for the UTC day, or a length up to 31 days as "90s", "15m", "6h"');
    return "day";
  }

  private approvalRule(value: unknown, at: string): ApprovalRule {
    const fields = this.fields(value, at, ["aboveUnits", "needed", "signed"]);
    const { signed } = fields;
    if (typeof signed !== "boolean") this.fault(`${at}.signed`, signed, "true or false");
    return {
      aboveUnits: this.units(fields["aboveUnits"], `${at}.aboveUnits`),
      needed: this.integer(fields["needed"], `${at}.needed`, { min: 1, max: MAX_APPROVALS }),
      signed: signed === true,
    };
  }

  private allowList(value: unknown): Policy["allowList"] {
    const at = "allowList";
    const fields = this.fields(value, at, ["delayHours", "others", "customers"]);
    const { others } = fields;
    if (others !== "any" && others !== "none") {
      this.fault(`${at}.others`, others, '"any" or "none"');
    }
    const range = { min: 0, max: MAX_DELAY_HOURS };
    return {
      delayHours: this.integer(fields["delayHours"], `${at}.delayHours`, range),
      others: others === "any" ? "any" : "none",
      customers: this.table(
        fields["customers"],
        `${at}.customers`,
        CUSTOMER_PATTERN,
        (listed, key) =>
          new Set(
            this.list(listed, key, MAX_ENTRIES, (item, place) => this.address(item, place)).filter(
              (address) => address !== undefined,
            ),
          ),
      ),
    };
  }

  private approver(value: unknown, at: string): Approver {
    const fields = this.fields(value, at, ["name", "publicKey"]);
    const [name, key] = [`${at}.name`, `${at}.publicKey`];
    const allowed = "an Ed25519 public key, 64 lower-case hex digits";
    const publicKey = this.text(fields["publicKey"], key, PUBLIC_KEY_PATTERN, allowed);
    if (isAnybodysKey(Buffer.from(publicKey, "hex"))) {
      this.fault(key, publicKey, "a key that somebody has: for this one everybody can sign");
    }
    return {
      name: this.text(fields["name"], name, NAME_PATTERN, "1 to 64 printable characters"),
      publicKey,
    };
  }

  private screening(value: unknown): Screening {
    const at = "screening";
    const fields = this.fields(value, at, ["url", "timeoutMs", "reviewApprovals"]);
    return {
      url: this.url(fields["url"], `${at}.url`),
      timeoutMs: this.integer(fields["timeoutMs"], `${at}.timeoutMs`, { min: 100, max: 60_000 }),
      reviewApprovals: this.integer(fields["reviewApprovals"], `${at}.reviewApprovals`, {
        min: 1,
        max: MAX_APPROVALS,
      }),
    };
  }

  private fields(value: unknown, at: string, names: readonly string[]): Fields {
    const prefix = at === "" ? "" : `${at}.`;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.fault(at === "" ? "(whole file)" : at, value, `an object with ${names.join(", ")}`);
      for (const name of names) this.#untold.add(`${prefix}${name}`);
      return Object.fromEntries(names.map((name) => [name, null]));
    }
    const fields: Fields = Object.fromEntries(Object.entries(value));
    for (const name of Object.keys(fields)) {
      if (!names.includes(name)) this.fault(`${prefix}${name}`, fields[name], "no such term");
    }
    for (const name of names) {
      if (name in fields) continue;
      const key = `${prefix}${name}`;
      this.fault(key, undefined, EVERY_TERM);
      this.#missing.set(key, this.faults.length - 1);
    }
    return fields;
  }

  private table<T>(
    value: unknown,
    at: string,
    pattern: RegExp,
    read: (item: unknown, key: string) => T,
  ): ReadonlyMap<string, T> {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.fault(at, value, "an object");
      return new Map();
    }
    const entries = Object.entries(value);
    if (entries.length > MAX_ENTRIES) {
      this.fault(at, `${entries.length} entries`, `at most ${MAX_ENTRIES}`);
      return new Map();
    }
    return new Map(
      entries.map(([name, item]): readonly [string, T] => {
        const key = `${at}.${name}`;
        if (!pattern.test(name)) this.fault(key, name, `a name of the form ${pattern.source}`);
        return [name, read(item, key)];
      }),
    );
  }

  private list<T>(
    value: unknown,
    at: string,
    most: number,
    read: (item: unknown, key: string) => T,
  ): readonly T[] {
    if (Array.isArray(value) && value.length <= most) {
      return value.map((item, index) => read(item, `${at}[${index}]`));
    }
    this.fault(at, value, `a list of at most ${most}`);
    return [];
  }

  private units(value: unknown, at: string, further = ""): bigint {
    const isUnits = typeof value === "string" && UNITS_PATTERN.test(value);
    if (isUnits && BigInt(value) <= MAX_ATOKEN) return BigInt(value);
    this.fault(at, value, `a decimal string of the asset's smallest unit${further}`);
    return 0n;
  }

  private optionalUnits(value: unknown, at: string): bigint | undefined {
    return value === null ? undefined : this.units(value, at, ", or null");
  }

  private integer(value: unknown, at: string, range: { min: number; max: number }): number {
    const isInteger = typeof value === "number" && Number.isSafeInteger(value);
    if (isInteger && value >= range.min && value <= range.max) return value;
    this.fault(at, value, `a whole number from ${range.min} to ${range.max}`);
    return range.min;
  }

  private text(value: unknown, at: string, pattern: RegExp, allowed: string): string {
    if (typeof value === "string" && pattern.test(value)) return value;
    this.fault(at, value, allowed);
    return "";
  }

  /** One that nothing can be asked at would end the worker with its first question. */
  private url(value: unknown, at: string): string {
    const isShort = typeof value === "string" && URL_PATTERN.test(value);
    if (isShort && isUrl(value, ["http", "https"])) return value;
    this.fault(at, value, "a URL of HTTP(S), at most 2,000 characters behind its scheme");
    return "";
  }

  private address(value: unknown, at: string): Address | undefined {
    try {
      return parseStrictAddress(value);
    } catch {
      this.fault(at, value, "0x and 40 hex digits, all lower case or with a right checksum");
      return undefined;
    }
  }

  /** Whether one of these is wrong: what it is compared with says nothing then. */
  private isTold(...keys: readonly string[]): boolean {
    return this.faults.some(({ key }) => keys.includes(key));
  }

  private fault(key: string, value: unknown, allowed: string): void {
    if (this.#untold.has(key)) return;
    // A fault is logged, and told on /ready: not what opens the screening service.
    const text = withoutAccess(JSON.stringify(value) ?? "nothing");
    const shown = text.slice(0, MAX_SHOWN_CHARACTERS);
    const place = this.#missing.get(key);
    if (place === undefined) this.faults.push({ key, value: shown, allowed });
    else this.faults[place] = { key, value: shown, allowed: `${EVERY_TERM}: ${allowed}` };
  }
}
