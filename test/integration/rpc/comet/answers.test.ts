/** Answers of the consensus RPC by hand: encodings of each transport, and what they show. */
import { describe, expect, it, jest } from "@jest/globals";
import { once } from "node:events";
import { WebSocket } from "ws";
import { hexToBytes } from "../../../../chain/hex.js";
import { ResultTexts } from "../../../../node/rpc/comet/json/result-texts.js";
import { serverForTests } from "./asked-server.js";

const server = serverForTests();
const { get, call } = server;

describe("encodings", () => {
  it("take hashes as hex, base64 and 0x, each where CometBFT does", async () => {
    const hash = server.chain.consensus.load(3)?.commit.blockId?.hash ?? "0x";
    const bytes = Buffer.from(hexToBytes(hash));
    const upper = bytes.toString("hex").toUpperCase();
    const header = (await get("header?height=3")).result;
    expect(header).toMatchObject({ header: { height: "3" } });
    expect((await call("header_by_hash", { hash: upper })).result).toEqual(header);
    expect((await get(`header_by_hash?hash=0x${upper}`)).result).toEqual(header);
    const block = (await get("block?height=3")).result;
    expect((await call("block_by_hash", { hash: bytes.toString("base64") })).result).toEqual(block);
    expect((await get(`block_by_hash?hash=0x${upper}`)).result).toEqual(block);
    expect((await get(`header_by_hash?hash=0x${"00".repeat(32)}`)).result).toEqual({
      header: null,
    });
    expect((await get("block_by_hash?hash=0x00")).result).toEqual({
      block_id: { hash: "", parts: { total: 0, hash: "" } },
      block: null,
    });
  });

  it("show failed transactions with a code, evidence, and validators that leave", async () => {
    expect((await get("block_results?height=4")).result).toMatchObject({
      txs_results: [{ code: 4, log: "invalid opcode", gas_wanted: "100000" }],
    });
    expect((await get("block_results?height=3")).result).toMatchObject({
      validator_updates: [{ pub_key: { Sum: { type: "tendermint.crypto.PublicKey_Ed25519" } } }],
    });
    expect((await get("validators?height=5")).result).toMatchObject({ total: "3" });
    expect((await get("block?height=3")).result).toMatchObject({
      block: { evidence: { evidence: [{ type: "tendermint/DuplicateVoteEvidence" }] } },
    });
  });

  it("do the work of a request as its client's, over HTTP and over WebSockets", async () => {
    const of = jest.spyOn(ResultTexts.prototype, "of");
    await get("block_results?height=3");
    const socket = new WebSocket(`${server.chain.url.replace("http", "ws")}/websocket`);
    await once(socket, "open");
    socket.send('{"jsonrpc":"2.0","id":1,"method":"block_results","params":{"height":"3"}}');
    await once(socket, "message");
    socket.terminate();
    const owners = of.mock.calls.map(([, owner]) => owner);
    of.mockRestore();
    expect(owners).toEqual([{ client: "127.0.0.1" }, { client: "127.0.0.1" }]);
  });

  it("serve the genesis whole and in chunks", async () => {
    const { genesis } = (await get("genesis")).result as { genesis: { app_hash: string } };
    const chunk = (await get("genesis_chunked?chunk=0")).result as { data: string };
    expect(JSON.parse(Buffer.from(chunk.data, "base64").toString())).toEqual(genesis);
    const first = (await get("header?height=1")).result as { header: { app_hash: string } };
    expect(genesis.app_hash).toBe(first.header.app_hash);
    expect((await get("genesis_chunked?chunk=1")).error?.data).toContain("1 is invalid");
  });

  it("show the height in progress and the peers", async () => {
    const turn =
      server.chain.consensus.validators(server.chain.consensus.height() + 1)?.proposer.address ??
      "";
    expect((await get("consensus_state")).result).toMatchObject({
      round_state: {
        "height/round/step": "8/0/4",
        height_vote_set: [{ prevotes_bit_array: "BA{3:xxx} 34/34 = 1.00" }],
        proposer: { address: turn.slice(2).toUpperCase() },
      },
    });
    expect((await get("dump_consensus_state")).result).toMatchObject({
      round_state: { height: "8", step: 4, locked_round: -1, valid_block: null, commit_round: -1 },
      peers: [
        {
          node_address: `${"cd".repeat(20)}@127.0.0.1:26756`,
          peer_state: { round_state: { round: -1 }, stats: { votes: "0", block_parts: "0" } },
        },
      ],
    });
    expect((await get("net_info")).result).toMatchObject({
      n_peers: "1",
      listening: true,
      peers: [
        {
          node_info: {
            listen_addr: "tcp://127.0.0.1:26756",
            version: "0.38.17",
            other: { tx_index: "on", rpc_address: "tcp://127.0.0.1:26757" },
          },
          connection_status: {
            Duration: "5000000000",
            SendMonitor: { Active: true, Bytes: "0" },
            RecvMonitor: { Active: true, TimeRem: "0" },
            Channels: [{ ID: 32, SendQueueSize: "0" }],
          },
        },
      ],
    });
  });
});
