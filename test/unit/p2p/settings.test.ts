/** The section p2p of config.toml, as CometBFT's operators write it. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { networkSettings } from "../../../node/p2p/network-settings.js";
import { P2P_SECTION } from "../../../node/settings/p2p-config.js";
import { defineConfigFile, loadConfig } from "../../../runtime/config/config.js";

const FILE = defineConfigFile("config", { p2p: P2P_SECTION });
const ID = "9c400330b16dde1f12fb2e104d3894d032a7ba56";

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "p2p-"));
  mkdirSync(join(home, "config"));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

function load(lines: readonly string[]) {
  writeFileSync(join(home, "config", "config.toml"), `[p2p]\n${lines.join("\n")}\n`);
  return networkSettings(loadConfig({ home, env: {} }, FILE).p2p);
}

describe("the settings of the network", () => {
  it("are read as they stand in a CometBFT home", () => {
    const settings = load([
      'laddr = "tcp://0.0.0.0:26656"',
      `persistent_peers = "${ID}@127.0.0.1:26656,${ID}@[::1]:1"`,
      'seeds = "seed1.example.org:26656"',
      "pex = false",
      "max_num_inbound_peers = 3",
      `unconditional_peer_ids = "${ID},${ID.toUpperCase()}"`,
      `private_peer_ids = "${ID}"`,
    ]);
    expect(settings).toEqual({
      listen: { host: "0.0.0.0", port: 26_656 },
      externalAddress: "",
      persistentPeers: [
        { nodeId: ID, host: "127.0.0.1", port: 26_656 },
        { nodeId: ID, host: "::1", port: 1 },
      ],
      seeds: [{ nodeId: undefined, host: "seed1.example.org", port: 26_656 }],
      pex: false,
      seedMode: false,
      maxInboundPeers: 3,
      maxOutboundPeers: 10,
      unconditionalPeerIds: [ID, ID],
      privatePeerIds: [ID],
    });
  });

  it("name what is wrong", () => {
    const wrong = [
      'persistent_peers = "127.0.0.1:26656"',
      `persistent_peers = "${ID.slice(1)}@127.0.0.1:26656"`,
      'seeds = "/ip4/127.0.0.1/tcp/1"',
      'external_address = "nowhere"',
      "max_num_outbound_peers = -1",
      `unconditional_peer_ids = "${ID.slice(1)}"`,
      `private_peer_ids = "${ID}@127.0.0.1:26656"`,
      `persistent_peers = "${ID}@127.0.0.1:99999"`,
      `persistent_peers = "${ID}@127.0.0.1:26656,${ID}@127.0.0.1:0"`,
      `persistent_peers = "${ID}@[::::]:26656"`,
      'seeds = "seed1.example.org:65536"',
      'external_address = "node.example.org:65536"',
      'external_address = "node.example.org:0"',
    ];
    const file = join(home, "config", "config.toml");
    for (const line of wrong) {
      const key = `p2p.${line.split(" ")[0]}`;
      const fault = expect.objectContaining({ file, key });
      const faults = expect.arrayContaining([fault]);
      expect(() => load([line])).toThrow(
        expect.objectContaining({ code: "INVALID_CONFIG", faults }),
      );
    }
  });
});
