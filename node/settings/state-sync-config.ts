/** The section `statesync` of config.toml, with the key names and forms of CometBFT. */
import { parseHash32, type Hash32, type Height } from "../../chain/hex.js";
import type { TextRule } from "../../runtime/config/config-values.js";
import { type ConfigFault, field, type ValuesOf } from "../../runtime/config/config.js";

const HOST = String.raw`(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]{1,253})`;
const SERVER = new RegExp(String.raw`^(tcp://|https?://)?${HOST}(:[0-9]{1,5})?/?$`);
/** The form alone lets ports pass that there are not, and numbers that are no addresses. */
const USABLE_SERVER: TextRule = {
  test: (text) => SERVER.test(text) && URL.canParse(serverUrl(text)),
};
const GO_DURATION =
  /^(?=.)(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6}(?:\.[0-9]{1,3})?)s)?(?:([0-9]{1,9})ms)?$/;
const OPTIONAL_HASH = /^([0-9A-Fa-f]{64})?$/;
const MIN_SERVERS = 2;

/** A time as Go writes it. */
function duration(defaultText: string, help: string) {
  return field.string({
    default: defaultText,
    pattern: GO_DURATION,
    allowed: 'a time with its units, for example "168h0m0s", "15s" or "500ms"',
    help,
  });
}

/** Keys of the section `statesync`. */
export const STATE_SYNC_SECTION = {
  enable: field.boolean({
    default: false,
    help:
      "Whether a node without blocks takes a snapshot of the state from its peers instead of " +
      "executing all blocks. A node that has blocks ignores it.",
  }),
  rpc_servers: field.list({
    default: [],
    style: "comma",
    pattern: USABLE_SERVER,
    allowed: "a list of host:port or http://host:port, separated by commas; ports up to 65535",
    help:
      "Consensus RPC servers that headers are asked of, two at least, of different operators: " +
      "what they say is compared.",
  }),
  trust_height: field.integer({
    default: 0,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    unit: "blocks",
    help: "Height of a block that you know to be right.",
  }),
  trust_hash: field.string({
    default: "",
    pattern: OPTIONAL_HASH,
    allowed: "64 hex digits, or empty",
    help: "Hash of that block as the consensus RPC shows it (block_id.hash of /commit).",
  }),
  trust_period: duration(
    "168h0m0s",
    "How long a block is trusted after its time; less than validators need to withdraw.",
  ),
  discovery_time: duration("15s", "How long snapshots are looked for before one is chosen."),
  chunk_request_timeout: duration("10s", "Time for a peer to send one chunk."),
  chunk_fetchers: field.integer({
    default: 4,
    min: 1,
    max: 64,
    help: "Chunks that are fetched at once.",
  }),
  max_snapshot_bytes: field.integer({
    default: 64 * 1024 ** 3,
    min: 1024 ** 2,
    max: Number.MAX_SAFE_INTEGER,
    unit: "bytes",
    help: "Largest snapshot that is fetched: its size is only what peers say until it is here.",
  }),
} as const;

/** Values of the section. */
export type StateSyncConfig = ValuesOf<{ statesync: typeof STATE_SYNC_SECTION }>["statesync"];

/** State sync as it is run. */
export interface StateSyncSettings {
  readonly servers: readonly string[];
  readonly trustHeight: Height;
  readonly trustHash: Hash32;
  readonly trustPeriodMs: number;
  readonly discoveryMs: number;
  readonly chunkTimeoutMs: number;
  readonly chunkFetchers: number;
  readonly maxSnapshotBytes: number;
}

/** What is wrong with the section as a whole, as CometBFT judges it. */
export function stateSyncFaults(config: StateSyncConfig): readonly Omit<ConfigFault, "file">[] {
  if (!config.enable) return [];
  const { rpc_servers: servers, trust_height: height, trust_hash: hash } = config;
  const required = "with statesync.enable";
  const checks: readonly (readonly [isWrong: boolean, fault: Omit<ConfigFault, "file">])[] = [
    [
      servers.length < MIN_SERVERS,
      {
        key: "statesync.rpc_servers",
        value: JSON.stringify(servers.join(",")),
        allowed: `at least ${MIN_SERVERS} servers ${required}`,
      },
    ],
    [
      height === 0,
      { key: "statesync.trust_height", value: "0", allowed: `a height from 1 on ${required}` },
    ],
    [
      hash === "",
      { key: "statesync.trust_hash", value: '""', allowed: `64 hex digits ${required}` },
    ],
    [
      durationMs(config.trust_period) === 0,
      {
        key: "statesync.trust_period",
        value: JSON.stringify(config.trust_period),
        allowed: `more than nothing ${required}`,
      },
    ],
    [
      durationMs(config.chunk_request_timeout) === 0,
      {
        key: "statesync.chunk_request_timeout",
        value: JSON.stringify(config.chunk_request_timeout),
        allowed: `more than nothing ${required}`,
      },
    ],
  ];
  return checks.flatMap(([isWrong, fault]) => (isWrong ? [fault] : []));
}

/** What state sync is run with; undefined where it is not enabled. */
export function stateSyncSettings(config: StateSyncConfig): StateSyncSettings | undefined {
  if (!config.enable) return undefined;
  return {
    servers: config.rpc_servers,
    trustHeight: config.trust_height,
    trustHash: parseHash32(`0x${config.trust_hash.toLowerCase()}`),
    trustPeriodMs: durationMs(config.trust_period),
    discoveryMs: durationMs(config.discovery_time),
    chunkTimeoutMs: durationMs(config.chunk_request_timeout),
    chunkFetchers: config.chunk_fetchers,
    maxSnapshotBytes: config.max_snapshot_bytes,
  };
}

/** The URL of a server as CometBFT takes it: without a scheme it is http. */
export function serverUrl(address: string): string {
  const plain = address.replace(/^tcp:\/\//, "");
  return plain.includes("://") ? plain : `http://${plain}`;
}

/** Milliseconds of a time that the schema let pass. */
function durationMs(text: string): number {
  const [hours = 0, minutes = 0, seconds = 0, ms = 0] = (GO_DURATION.exec(text) ?? [])
    .slice(1)
    .map((part) => Number(part ?? 0));
  return ((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms;
}
