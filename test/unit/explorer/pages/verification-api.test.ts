/** The API of Etherscan's clients where there is nothing to give: it is JSON all the same. */
import { expect, it } from "@jest/globals";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { verificationApiRoutes } from "../../../../explorer/pages/contracts/verification-api.js";
import type { PageRequest } from "../../../../explorer/server/page.js";

const ADDRESS = `0x${"ab".repeat(20)}`;

/** Asks an explorer, by default one that verifies nothing. */
async function ask(
  query: Readonly<Record<string, string>>,
  isSent = false,
  contracts: object = {},
): Promise<unknown> {
  const [route] = verificationApiRoutes({ contracts } as unknown as PageContext);
  const given = new URLSearchParams({ module: "contract", ...query });
  const request = { query: given, isSent, signal: new AbortController().signal };
  const answer = await route?.handle(request as unknown as PageRequest);
  return answer !== undefined && "json" in answer ? answer.json : answer;
}

it("refuses an address that is none, and what is not done here, in Etherscan's form", async () => {
  const refusal = (result: string) => ({ status: "0", message: "NOTOK", result });
  for (const action of ["getabi", "getsourcecode"]) {
    for (const address of ["", "x", `${ADDRESS}00`]) {
      expect(await ask({ action, address })).toEqual(refusal("Error! Invalid address format"));
    }
  }
  const form = { contractaddress: ADDRESS, codeformat: "solidity-standard-json-input" };
  expect(await ask({ action: "verifysourcecode", ...form }, true)).toEqual(
    refusal("Error! contracts are not verified here"),
  );
});

it("tells that code differs in the words that clients compare, and why beside them", async () => {
  const refused = (code: string, detail: string) => ({
    verifier: { job: () => ({ outcome: { kind: "refused", code, detail } }) },
  });
  const query = { action: "checkverifystatus", guid: "1" };
  // Hardhat compares the whole text, and sends all sources then where it had sent some.
  expect(await ask(query, false, refused("MISMATCH", "first difference at byte 7"))).toEqual({
    status: "0",
    message: "MISMATCH: first difference at byte 7",
    result: "Fail - Unable to verify",
  });
  expect(await ask(query, false, refused("COMPILE_ERRORS", "ParserError"))).toEqual({
    status: "0",
    message: "NOTOK",
    result: "Fail - Unable to verify. COMPILE_ERRORS: ParserError",
  });
});
