/** What pages tell operators, where following a wrong word loses money or takes a chain's only copy. */
import fs from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { ZERO_ADDRESS } from "../../chain/address.js";
import { ZERO_HASH } from "../../chain/hex.js";
import { DEFAULT_PORTS } from "../../chain/networks.js";
import { encodeTokenList } from "../../chain/token-list.js";
import { EVENT_TYPES } from "../../ledger/events.js";

const pages = fs
  .readdirSync("docs", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`)
  .concat("README.md")
  .map((path) => ({ path, text: fs.readFileSync(path, "utf8").replaceAll(/\s+/g, " ") }));

/** Where figures are registered. */
const SOURCES = ["console", "deposit-watcher", "explorer", "indexer", "node", "runtime", "sidecar"]
  .concat("withdrawal-worker")
  .flatMap((folder) =>
    fs
      .readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => fs.readFileSync(`${folder}/${name}`, "utf8")),
  );

/** Names of all figures of the kit: written out, or put together in their file of prefix and end. */
function namesOf(source: string): readonly string[] {
  const whole = [...source.matchAll(/"(causeway_[a-z_]*[a-z])"/g)].map(([, name = ""]) => name);
  const parts = [...source.matchAll(/`(causeway_[a-z]+_)\$\{\w+\}([a-z_]*)`/g)];
  const ends = [...source.matchAll(/\b(?:name|show|gauge|counter)\(\s*"((?!causeway_)[a-z_]+)"/g)];
  const made = parts.flatMap(([, prefix = "", suffix = ""]) =>
    ends.map(([, end = ""]) => `${prefix}${end}${suffix}`),
  );
  return [...whole, ...made];
}

/** What tells by itself that money, blocks, books or those who read them stand still. */
const OF_HEALTH =
  /_(halted|frozen|disabled|clean|held|key_present|queue_open|lag_blocks|backlog_events|dead_deliveries|stalled_seconds|age_seconds|timestamp_seconds|faults_total|failures_total|differences_total|quarantined_height)$/;

describe("pages", () => {
  it("name figures that there are, and an alarm on each that tells of health", () => {
    const names = new Set(SOURCES.flatMap(namesOf));
    const named = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\bcauseway_[a-z]+(?:_[a-z]+)+/g)].map(([name]) => ({ path, name })),
    );
    expect(named.filter(({ name }) => !names.has(name))).toEqual([]);
    const operations = pages.find(({ path }) => path === "docs/operations.md")?.text ?? "";
    const [alarms = ""] = (operations.split("### Alarms")[1] ?? "").split(" ## ");
    const ofHealth = [...names].filter((name) => OF_HEALTH.test(name));
    expect(ofHealth.length).toBeGreaterThan(15);
    expect(ofHealth.filter((name) => !alarms.includes(`\`${name}`))).toEqual([]);
  });

  it("let nobody delete a home's data as a whole: a kit's ledger lies there", () => {
    const allowed =
      /`data\/?`[^.;:|]*\b(may|can) be (deleted|removed)|\b(delete|remove) `data\/?`/gi;
    const found = pages.flatMap(({ path, text }) =>
      [...text.matchAll(allowed)].map(([words]) => `${path}: ${words}`),
    );
    expect(found).toEqual([]);
    expect(pages.length).toBeGreaterThan(20);
  });

  it("name every port of the kit", () => {
    const operations = pages.find(({ path }) => path === "docs/operations.md")?.text ?? "";
    const [section = ""] = (operations.split("## Ports")[1] ?? "").split(" ## ");
    const unnamed = Object.entries(DEFAULT_PORTS).filter(
      ([, port]) => !new RegExp(`\\b${port}\\b`).test(section),
    );
    expect(unnamed).toEqual([]);
  });

  it("say how a network is made that nodes of other machines reach", () => {
    const readme = pages.find(({ path }) => path === "README.md")?.text ?? "";
    const [section = ""] = (readme.split("## Networks")[1] ?? "").split(" ## ");
    for (const words of ["--hosts", "p2p.laddr", "p2p.external_address"]) {
      expect(section).toContain(words);
    }
  });

  it("call a node that has halted broken only where its log names a broken invariant", () => {
    const operations = pages.find(({ path }) => path === "docs/operations.md")?.text ?? "";
    const fault = operations.split("fault of the software").slice(0, -1).join("");
    const row = fault.slice(fault.lastIndexOf("`causeway_halted` 1"));
    expect(row).toContain("`BALANCE_JOURNAL_MISMATCH` or `SUPPLY_MISMATCH`");
  });

  it("ask for a copy of a single validator's chain before another release is started", () => {
    const operations = pages.find(({ path }) => path === "docs/operations.md")?.text ?? "";
    const [, section = ""] = operations.split("## Another release");
    const [before = ""] = section.split("start the new release");
    for (const part of ["data/chain", "data/cs.wal", "data/priv_validator_state.json"]) {
      expect(before).toContain(`\`${part}\``);
    }
  });

  it("promise nobody that mined bytes are known where the block that has them is not", () => {
    const cosmos = pages.find(({ path }) => path === "docs/cosmos.md")?.text ?? "";
    const [, promise = ""] = cosmos.split("is code 19");
    const [limits = ""] = promise.split("## Events");
    for (const words of ["state sync", "`earliest_block_height`", "before anything is paid anew"]) {
      expect(limits).toContain(words);
    }
    const operations = pages.find(({ path }) => path === "docs/operations.md")?.text ?? "";
    expect(operations).toContain("bytes of a pruned transaction, sent again");
  });

  it("ask for an archive of proofs only where proofs are meant", () => {
    const found = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/`pruning = "nothing"`/g)]
        .map(({ index }) => text.slice(Math.max(0, index - 200), index + 200))
        .filter((around) => !/proof|trie/i.test(around))
        .map((around) => `${path}: ${around}`),
    );
    expect(found).toEqual([]);
  });

  it("name every type of event to who is told of them", () => {
    const described = fs.readFileSync("openapi/deposit.yaml", "utf8");
    const guide = pages.find(({ path }) => path === "docs/guide/webhooks.md")?.text ?? "";
    const [table = ""] = (guide.split("### Types of events")[1] ?? "").split(" ## ");
    expect(EVENT_TYPES.filter((type) => !table.includes(`\`${type}\``))).toEqual([]);
    const [event = ""] = (described.split("\n    Event:\n")[1] ?? "").split("\n        data:");
    expect(EVENT_TYPES.filter((type) => !event.includes(`\`${type}\``))).toEqual([]);
  });

  it("have one bound for a figure, in whichever tables it stands", () => {
    const rows = fs
      .readFileSync("docs/operations.md", "utf8")
      .split("\n")
      .filter((line) => line.startsWith("| `causeway_"))
      .flatMap((line) => {
        const [, first = ""] = line.split("|");
        const bounds = [...line.matchAll(/\babove (\d[\d,]*\d|\d)/g)].map(
          ([, bound = ""]) => bound,
        );
        const names = [...first.matchAll(/`(\w+)/g)].map(([, name = ""]) => name);
        const [whole = ""] = names;
        // `causeway_sidecar_index_height`, `_index_lag_blocks`: an end stands for a figure of the same part.
        const [part = ""] = /^causeway_[a-z]+/.exec(whole) ?? [];
        const figures = names.map((name) => (name.startsWith("_") ? `${part}${name}` : name));
        return bounds.length === 1 ? figures.map((figure) => ({ figure, bound: bounds[0] })) : [];
      });
    const bounds = new Map<string, Set<string | undefined>>();
    for (const { figure, bound } of rows)
      bounds.set(figure, (bounds.get(figure) ?? new Set()).add(bound));
    expect(bounds.size).toBeGreaterThan(5);
    const differing = [...bounds].filter(([, { size }]) => size > 1);
    expect(differing.map(([figure, found]) => `${figure}: ${[...found].join(", ")}`)).toEqual([]);
  });

  it("say of a halted indexer what every way into that state asks for", () => {
    const operations = fs.readFileSync("docs/operations.md", "utf8");
    const row = /^\| `causeway_indexer_halted` .*$/m.exec(operations)?.[0];
    expect(row).toMatch(/another chain or block.*of another release.*`causeway indexer rebuild`/);
    const help = SOURCES.flatMap(
      (source) => /"causeway_indexer_halted",\s*"([^"]*)"/.exec(source) ?? [],
    );
    expect(help.at(-1)).toBe("1 while it does not go on until somebody acts; /ready says why");
  });

  it("say what each field of a token that may be left out is", () => {
    const required = { contractAddress: ZERO_ADDRESS, symbol: "GOLD", decimals: 6 };
    const fieldsOf = (entry: Parameters<typeof encodeTokenList>[0][number]): string[] =>
      Object.keys(JSON.parse(encodeTokenList([entry]))[0]);
    const known = fieldsOf({ ...required, codeHash: ZERO_HASH });
    const optional = known.filter((field) => !fieldsOf(required).includes(field));
    expect(optional).not.toEqual([]);
    const operations = pages.find(({ path }) => path === "docs/operations.md")?.text ?? "";
    const [section = ""] = (operations.split("## Tokens in the books")[1] ?? "").split(" ## ");
    const form = `[{${known.map((field) => (optional.includes(field) ? `${field}?` : field)).join(", ")}}]`;
    expect(section).toContain(`\`${form}\``);
    expect(optional.filter((field) => !section.includes(`\`${field}\` is`))).toEqual([]);
  });

  it("say whose key a worker has that signs by a signer of its own", () => {
    const operations = fs.readFileSync("docs/operations.md", "utf8");
    const row = /^\| `causeway_wallet_key_present` .*$/m.exec(operations)?.[0];
    const [, help] =
      SOURCES.map((source) => /"causeway_wallet_key_present",\s*"([^"]*)"/.exec(source)).find(
        (found) => found !== null,
      ) ?? [];
    for (const told of [row, help]) expect(told).toContain("signer.kind");
    expect(row).toMatch(/`keyHeld` of `GET \/v1\/wallets`.*`NO KEY` of `causeway treasury status`/);
  });
});
