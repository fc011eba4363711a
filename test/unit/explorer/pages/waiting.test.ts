/** Transactions that no block has, by what the node's pool says of them. */
import { describe, expect, it } from "@jest/globals";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { depositRoutes } from "../../../../explorer/pages/deposit.js";
import { transactionRoutes } from "../../../../explorer/pages/transaction.js";
import { NodeFault } from "../../../../rpc-client/errors.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const HASH = `0x${"ab".repeat(32)}`;

/** A node that has the hash in no block, and this to say of it. */
function contextOf(status: object): PageContext {
  const none = () => Promise.resolve(undefined);
  return {
    chain: {
      head: () => Promise.resolve({ height: 9 }),
      transaction: none,
      headerByHash: none,
      evm: { transactionStatus: () => Promise.resolve(status) },
    },
    consensus: { transaction: none, heightOfHash: none },
    publicUrl: "",
  } as unknown as PageContext;
}

const MINED = { status: "included", height: 7, index: 0 };

async function open(context: PageContext, path: "/tx" | "/deposit") {
  const routes = [...transactionRoutes(context), ...depositRoutes(context)];
  const page = await openPage(
    routes.find((one) => one.path === path),
    { parameter: HASH, query: { tx: HASH } },
  );
  const { text } = shownContent(page.content);
  return { status: page.status ?? 200, text, isFinal: page.isFinal === true };
}

describe("a transaction in no block", () => {
  it("is pending where the pool has it, also one of the Cosmos side, which JSON-RPC has not", async () => {
    const waiting = [{ status: "pending" }, { status: "queued", missingNonce: 3n }];
    for (const fate of waiting) {
      for (const path of ["/tx", "/deposit"] as const) {
        const { status, text, isFinal } = await open(contextOf(fate), path);
        expect({ fate, path, status, isFinal }).toEqual({
          fate,
          path,
          status: 200,
          isFinal: false,
        });
        expect(text).toContain("not in blocks up to 9; pending: yes");
      }
    }
  });

  it("is unknown where the pool does not have it, and its end is told where it does", async () => {
    const by = `0x${"cd".repeat(32)}`;
    for (const [fate, said] of [
      [{ status: "unknown" }, "pending: no"],
      [{ status: "replaced", by }, by],
      [{ status: "dropped", reason: "x" }, "was dropped"],
    ] as const) {
      for (const path of ["/tx", "/deposit"] as const) {
        const { status, text } = await open(contextOf(fate), path);
        expect({ fate, path, status }).toEqual({ fate, path, status: 404 });
        expect(text).toContain(said);
      }
    }
  });

  it("is in one where the node knows that, though it has nothing more of it", async () => {
    for (const path of ["/tx", "/deposit"] as const) {
      const { status, text } = await open(contextOf(MINED), path);
      expect({ path, status }).toEqual({ path, status: 200 });
      expect(text).toContain("Included in block7");
      expect(text).toContain("The node has deleted data that is so old.");
      expect(text).not.toContain("not in blocks");
      // A block that came between two questions.
      const next = await open(contextOf({ ...MINED, height: 10 }), path);
      expect(next.text).toContain("not in blocks up to 9; pending: yes");
    }
  });

  it("is not called unknown while nobody says whether the Cosmos side has it", async () => {
    const silent = (status: string): PageContext => {
      const fault = () => Promise.reject(new NodeFault("NODE_UNREACHABLE", "no answer"));
      return { ...contextOf({ status }), consensus: { transaction: fault } as never };
    };
    for (const path of ["/tx", "/deposit"] as const) {
      await expect(open(silent("unknown"), path)).rejects.toThrow("no answer");
      const mined = { ...silent("unknown"), chain: contextOf(MINED).chain };
      await expect(open(mined, path)).rejects.toThrow("no answer");
      expect((await open(silent("pending"), path)).text).toContain("pending: yes");
    }
  });
});
