/** A block comes as bytes with its commit, which tells whose fault it is where they cannot be read. */
import { afterEach, expect, it } from "@jest/globals";
import { encodeCommit } from "../../../chain/consensus/commit.js";
import { encodeConsensusBlock } from "../../../chain/consensus/consensus-block.js";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import type { ReceivedBlock } from "../../../node/consensus/consensus-ports.js";
import { blockSource } from "../../../node/p2p/blocks/block-protocol.js";
import { trueBlock } from "./fakes.js";
import { startHost, stopHosts } from "./support.js";

afterEach(stopHosts);

const { signal } = new AbortController();

/** What a server of a later version gives: its blocks have a field more. */
async function receive(heights: readonly number[], commitBytes?: Buffer) {
  const [server, joiner] = [await startHost(), await startHost()];
  await server.host.handle({
    protocol: "/causeway/blocks/1",
    maxMessageBytes: 64,
    maxInboundStreams: 8,
    async serve(link, channel) {
      await channel.read(link.signal);
      for (const height of heights) {
        const bytes = new ProtoWriter()
          .message(1, laterBlock(height))
          .message(2, commitBytes ?? encodeCommit(trueBlock(height).commit))
          .finish();
        await channel.write(bytes, link.signal);
      }
      await channel.close(link.signal);
    },
  });
  const link = await joiner.host.dial(server.address, { signal });
  const received: ReceivedBlock[] = [];
  const count = await blockSource(link).blocks(
    { from: 1, count: 2 },
    { signal, onBlock: (block) => received.push(block) },
  );
  return { count, received };
}

function laterBlock(height: number): Buffer {
  return Buffer.concat([
    encodeConsensusBlock(trueBlock(height).block),
    new ProtoWriter().integer(9, 1).finish(),
  ]);
}

it("hands over the bytes with the commit, for that may prove them", async () => {
  const { count, received } = await receive([1, 2]);
  expect(count).toBe(2);
  expect(received).toEqual(
    [1, 2].map((height) => ({
      blockBytes: expect.anything(),
      commit: trueBlock(height).commit,
    })),
  );
  for (const [index, block] of received.entries()) {
    if (!("blockBytes" in block)) throw new Error("a block that was read");
    expect(Buffer.compare(block.blockBytes, laterBlock(index + 1))).toBe(0);
  }
});

it("is the sender's fault where its commit is of another height or none", async () => {
  await expect(receive([2])).rejects.toMatchObject({ code: "PEER_PROTOCOL" });
  await expect(receive([1], Buffer.from("ff", "hex"))).rejects.toMatchObject({
    code: "PEER_PROTOCOL",
  });
});
