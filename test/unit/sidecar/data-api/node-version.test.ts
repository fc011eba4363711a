/** Whose release `node_version` of /network/options is: the node's, as it says, not the server's own. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { KIT_VERSION } from "../../../../chain/version.js";
import { type FakeNode, RpcFault } from "../../../helpers/chains/fake-node.js";
import { until } from "../../../helpers/until.js";
import { closeAll, start, startNode } from "../index/index-bench.js";
import { call, offlineServer, type Online } from "../servers.js";

afterEach(closeAll);

const versionOf = async ({ server }: Pick<Online, "server">) =>
  (await call(server, "/network/options")).body.version;

const saying = (text: unknown) => startNode({ web3_clientVersion: () => text });

/** A sidecar that has met the node. */
async function follow(node: FakeNode): Promise<Online> {
  const online = start(node);
  await online.indexed(2);
  return online;
}

describe("node_version", () => {
  it("is what the node says of itself", async () => {
    const online = await follow(await saying("causeway/v9.9.9/linux-x64/node22.12.0"));
    expect(await versionOf(online)).toMatchObject({
      rosetta_version: "1.5.1",
      node_version: "9.9.9",
      middleware_version: KIT_VERSION,
    });
  });

  it("is told anew where the node went away and came back as another one", async () => {
    const node = await saying("causeway/v9.9.9/linux-x64/node22.12.0");
    const online = await follow(node);
    expect((await versionOf(online)).node_version).toBe("9.9.9");
    const blocks = node.methods.get("eth_getBlockByNumber");
    node.methods.set("eth_getBlockByNumber", () => {
      throw new RpcFault(-32_000, "the node is stopping");
    });
    const { follower } = online.index;
    const woken = (holds: () => boolean) =>
      until(
        () => {
          follower.wake();
          return holds();
        },
        { timeoutMs: 20_000 },
      );
    await woken(() => follower.fault() !== undefined);
    // Nobody else has said so yet.
    expect((await versionOf(online)).node_version).toBe("9.9.9");
    node.methods.set("web3_clientVersion", () => "causeway/v9.10.0-rc.1+3/linux-x64/node24.0.0");
    if (blocks !== undefined) node.methods.set("eth_getBlockByNumber", blocks);
    await woken(() => follower.fault() === undefined);
    expect((await versionOf(online)).node_version).toBe("9.10.0-rc.1+3");
  });

  it.each([
    ["no text", 7],
    ["nothing", null],
    ["no version", "causeway"],
    ["a name without end", `causeway/v${"9".repeat(65)}/linux`],
    ["what nobody can print", "causeway/v1\u0007/linux"],
  ])("is the server's own where the node says %s, and the index goes on", async (_name, text) => {
    const online = await follow(await saying(text));
    expect((await versionOf(online)).node_version).toBe(KIT_VERSION);
  });

  it("is the server's own where the node does not know the question, or refuses it", async () => {
    for (const code of [-32_601, -32_005]) {
      const refusing = () => {
        throw new RpcFault(code, "refused");
      };
      const online = await follow(await startNode({ web3_clientVersion: refusing }));
      expect((await versionOf(online)).node_version).toBe(KIT_VERSION);
    }
  });

  it("is the server's own offline", async () => {
    expect((await versionOf({ server: offlineServer() })).node_version).toBe(KIT_VERSION);
  });
});
