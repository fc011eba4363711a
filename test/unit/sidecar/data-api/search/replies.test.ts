/** Replies about searches and events, by Rosetta's own description and its asserter's rules. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { Ajv } from "ajv";
import { assertOperations } from "../../asserter.js";
import { events, path, post, search } from "./searched-chain.js";

const REFERENCE = path("../shared/reference/mesh/api.json");

describe("replies", () => {
  const hasReference = existsSync(REFERENCE);
  if (!hasReference)
    process.stdout.write(`skipped: no ${REFERENCE}; replies are not checked by it\n`);
  const withReference = hasReference ? it : it.skip;

  withReference("are valid by Rosetta's own description and its asserter's rules", async () => {
    const ajv = new Ajv({ strict: false, allErrors: true, formats: { int32: true, int64: true } });
    ajv.addSchema({ $id: "api", ...JSON.parse(readFileSync(REFERENCE, "utf8")) });
    const check = (schema: string, value: unknown) => {
      const validate = ajv.compile({ $ref: `api#/components/schemas/${schema}` });
      expect({ schema, ok: validate(value), errors: validate.errors }).toMatchObject({ ok: true });
    };
    const { allow } = (await post("/network/options", {})).body;
    for (const fields of [{}, { type: "CALL", limit: 5 }, { offset: 1e6 }]) {
      const { body } = await search(fields);
      check("SearchTransactionsResponse", body);
      for (const { transaction } of body.transactions) {
        assertOperations(transaction.operations, { allow, construction: false });
      }
    }
    const reply = await events({ limit: 9 });
    check("EventsBlocksResponse", reply);
    const [first] = reply.events;
    reply.events.forEach(({ sequence }, nth) =>
      expect(sequence).toBe((first?.sequence ?? 0) + nth),
    );
  });
});
