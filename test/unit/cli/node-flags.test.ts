import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { expect, it } from "@jest/globals";
import { ConfigError } from "../../../runtime/config/config.js";
import { homePaths } from "../../../cli/home/home.js";
import { planChain } from "../../../cli/home/attach.js";
import { runCommand } from "../../helpers/command-line.js";

it("tells of a node's URL that is wrong, or of what answers there, no password and no key", async () => {
  const server = createServer((_request, response) => response.end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const place = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = (node: string) => runCommand(tmpdir(), ["query", "supply", "--node", node]);
  const answered = await ask(`http://ann:s3cret@${place}/s3cret`);
  expect(answered.err).toContain(`http://***@${place}/*** does not answer abci_query`);
  const wrong = await ask(`htp://ann:s3cret@${place}`);
  expect(wrong.err).toContain(`not "htp://***@${place}"`);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const nodeUrl = "https://ann:s3cret@node.example:100000/s3cret";
  try {
    planChain({ nodeUrl }, homePaths("/nonexistent"), {});
    throw new Error("a wrong URL was taken");
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toContain(`--node-url = "https://***@node.example:100000/***"`);
    expect(String(error)).not.toContain("s3cret");
  }
});
