/** What a block's transactions tell beside their operations. */
import { describe, expect, it } from "@jest/globals";
import { parseJournaledBlock } from "../../../../rpc-client/journal-codec.js";
import { toRosettaBlock } from "../../../../sidecar/rosetta/operations.js";
import { CONTRACT, journals, transaction } from "../../../helpers/chains/journal-chain.js";

/** Metadata of a creation that ends with this status. */
function metadataOf(status: "0x0" | "0x1") {
  const created = { to: null, contractAddress: CONTRACT, input: "0x6001", status };
  const quiet = { transactions: [transaction("create", 0, created)], blockChanges: [] };
  const journal = parseJournaledBlock({ ...journals()[2], ...quiet, minted: "0x0", burned: "0x0" });
  return toRosettaBlock(journal, { moves: [[]], leftOut: [] }).transactions[0]?.metadata;
}

describe("the metadata of a creation", () => {
  it("names the contract", () => {
    const { status, contract_address: contract } = metadataOf("0x1") ?? {};
    expect([status, String(contract).toLowerCase()]).toEqual(["SUCCESS", CONTRACT]);
  });

  it("names none where it failed: there is nothing at the address that it would have had", () => {
    const metadata = metadataOf("0x0");
    expect(metadata?.["status"]).toBe("FAILURE");
    expect(metadata).not.toHaveProperty("contract_address");
  });
});
