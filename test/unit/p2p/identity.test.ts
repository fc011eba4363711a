/** Node keys and addresses, as CometBFT writes them. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeIdOf, nodeKeyOf, openNodeKey, parseNodeId } from "../../../node/p2p/node-key.js";
import {
  formatPeerAddress,
  multiaddrTextOf,
  parseKnownPeerAddress,
  parsePeerAddress,
} from "../../../node/p2p/peers/peer-address.js";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "p2p-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Made by CometBFT v0.38.17: `cometbft init`, `cometbft show-node-id`. */
const COMET_KEY =
  "j1Ppt4IkWMjhugxPetvdYupLBB7p3LGAcmOr9otyfVolXlUsUit9Y1G7nc6qzILAMnzOiOIgvDPg/MzGGRzxcQ==";
const COMET_ID = "9c400330b16dde1f12fb2e104d3894d032a7ba56";

describe("a node key", () => {
  it("of CometBFT has CometBFT's node id", () => {
    const file = join(folder, "node_key.json");
    const type = "tendermint/PrivKeyEd25519";
    writeFileSync(file, JSON.stringify({ priv_key: { type, value: COMET_KEY } }));
    expect(openNodeKey(file).nodeId).toBe(COMET_ID);
    const publicKey = Buffer.from(COMET_KEY, "base64").subarray(32);
    expect(nodeIdOf(publicKey)).toBe(COMET_ID);
  });

  it("is made where there is none, readable by nobody else, and stays", () => {
    const file = join(folder, "node_key.json");
    const key = openNodeKey(file);
    expect(openNodeKey(file)).toEqual(key);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(nodeKeyOf(key.seed).nodeId).toBe(key.nodeId);
    const parsed: unknown = JSON.parse(readFileSync(file, "utf8"));
    expect(parsed).toMatchObject({ priv_key: { type: "tendermint/PrivKeyEd25519" } });
  });

  it("that cannot be read or made is told of with file and cause", () => {
    const missing = join(folder, "missing", "node_key.json");
    expect(() => openNodeKey(missing)).toThrow(`cannot write ${missing} (ENOENT)`);
    expect(() => openNodeKey(folder)).toThrow(`cannot read ${folder} (EISDIR)`);
  });

  it("that is damaged is refused without telling any of it", () => {
    const file = join(folder, "node_key.json");
    const type = "tendermint/PrivKeyEd25519";
    const halves = Buffer.from(COMET_KEY, "base64");
    halves[40] = (halves[40] ?? 0) ^ 1;
    const texts = [
      "not json SECRET",
      "{}",
      JSON.stringify({ priv_key: { type, value: "U0VDUkVU" } }),
      JSON.stringify({ priv_key: { type, value: halves.toString("base64") } }),
      JSON.stringify({ priv_key: { type: "other", value: COMET_KEY } }),
    ];
    for (const text of texts) {
      writeFileSync(file, text);
      try {
        openNodeKey(file);
        throw new Error(`accepted: ${text}`);
      } catch (error) {
        expect(error).toMatchObject({ code: "NODE_KEY_INVALID" });
        expect(String(error)).not.toMatch(/SECRET|U0VD/);
      }
    }
  });
});

describe("a peer's address", () => {
  const id = "0123456789abcdef0123456789abcdef01234567";

  it("is read as operators write it", () => {
    const cases: [string, string | undefined, string, number, string][] = [
      [`${id}@127.0.0.1:26656`, id, "127.0.0.1", 26_656, "/ip4/127.0.0.1/tcp/26656"],
      [`tcp://${id}@10.0.0.1:1`, id, "10.0.0.1", 1, "/ip4/10.0.0.1/tcp/1"],
      [`${id.toUpperCase()}@[::1]:65535`, id, "::1", 65_535, "/ip6/::1/tcp/65535"],
      ["seed-1.example.org:26656", undefined, "seed-1.example.org", 26_656, ""],
    ];
    for (const [text, nodeId, host, port, multiaddr] of cases) {
      const address = parsePeerAddress(text);
      expect(address).toEqual({ nodeId, host, port });
      expect(parsePeerAddress(formatPeerAddress(address))).toEqual(address);
      expect(multiaddrTextOf(address)).toBe(multiaddr || "/dns/seed-1.example.org/tcp/26656");
    }
  });

  it("is refused otherwise", () => {
    const wrong = [
      "",
      "host",
      "host:0",
      "host:65536",
      "host:1:2",
      `${id.slice(1)}@host:1`,
      "@host:1",
      "ho st:1",
      "host/x:1",
      "[127.0.0.1]:1",
      `${"a".repeat(254)}:1`,
    ];
    for (const text of wrong) {
      expect(() => parsePeerAddress(text)).toThrow(expect.objectContaining({ code: CODE }));
    }
    expect(() => parseKnownPeerAddress("host:1")).toThrow(expect.objectContaining({ code: CODE }));
    expect(() => parseNodeId("xyz")).toThrow(expect.objectContaining({ code: CODE }));
  });
});

const CODE = "PEER_ADDRESS_INVALID";
