/** The reply of /block: taken apart by its bytes, parsed only where it concerns the reader. */
import type { Address } from "../../chain/address.js";
import { readList, readObject, readOptional } from "../answer-fields.js";
import { badAnswer } from "../errors.js";
import { CUT_OUT, type ScannedReply, scanBlockReply } from "./block-scan.js";
import { type DataBlock, parseBlockHead, parseJson, parseTransaction } from "./data-block.js";

/** The block; undefined for a reply without one. @throws BAD_ANSWER */
export function parseBlockReply(body: Buffer): DataBlock | undefined {
  try {
    return parseBlock(scanBlockReply(body), body.length);
  } catch {
    // Not a block as JSON.stringify writes it: another server's spaces, no block, or no sense.
    const answer = readObject(parseJson(body.toString("utf8")), "answer");
    if (answer["block"] === null || answer["block"] === undefined) return undefined;
    const written = Buffer.from(JSON.stringify(answer), "utf8");
    return parseBlock(scanBlockReply(written), written.length);
  }
}

function parseBlock(reply: ScannedReply, sizeBytes: number): DataBlock {
  const frame = readObject(parseJson(reply.frame), "answer");
  const block = readObject(frame["block"], "block");
  // Mesh lets a server name transactions that it does not show: what they paid would be passed over.
  const others = readOptional(frame["other_transactions"], "other_transactions", readList) ?? [];
  if (others.length > 0) throw badAnswer("it leaves out transactions of the block");
  const list = readList(block["transactions"], "transactions");
  // What the scan took for the block's transactions must be what a JSON parser calls so.
  if (list.length !== 1 || list[0] !== CUT_OUT) throw badAnswer("more than one list");
  const parse = (position: number) =>
    parseTransaction(parseJson(reply.transactionText(position)), position);
  return {
    ...parseBlockHead(block),
    transactionCount: reply.transactionCount,
    accountCount: reply.accountCount,
    sizeBytes,
    transactions: async (concerns, { among }) => reply.concerning(concerns, among).map(parse),
    addresses() {
      const addresses = new Set<Address>();
      const collect = (address: Address) => {
        addresses.add(address);
        return false;
      };
      // Asking collects; transactions that come all the same may name accounts in unusual ways.
      for (const position of reply.concerning(collect)) {
        for (const { address } of parse(position).operations) addresses.add(address);
      }
      return addresses;
    },
  };
}
