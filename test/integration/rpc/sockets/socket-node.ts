/** A node's 8546 for tests, on live sockets; what a test opens is closed behind it. */
import { afterEach } from "@jest/globals";
import { createClientMemory } from "../../../../node/rpc/client-memory.js";
import type { EvmRpcLimits } from "../../../../node/rpc/evm/options.js";
import { startEvmSocketServer } from "../../../../node/rpc/evm/sockets/socket-server.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { createTestNode } from "../../../unit/rpc/evm/fixture.js";

/** What is done behind each test, the last first. */
export const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** The server over a chain of the test's. */
export async function startNode(limits: Partial<EvmRpcLimits> = {}, port = 0) {
  const node = createTestNode(limits);
  const listen = { host: "127.0.0.1", port };
  const server = await startEvmSocketServer(node.api, {
    listen,
    allowedOrigins: ["https://wallet.example"],
    socketOrigins: ["localhost"],
    memory: createClientMemory(systemClock),
  });
  cleanups.push(() => server.stop());
  return { ...node, server, url: `ws://127.0.0.1:${server.address.port}` };
}
