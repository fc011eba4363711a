/** Hashes and addresses as people paste them into the console: in each form that the kit shows them in. */
import { expect, it } from "@jest/globals";
import { bech32 } from "@scure/base";
import { getBytes } from "ethers";
import { depositRoutes } from "../../../console/pages/deposits.js";
import { shownPage } from "../../helpers/pages/console-page.js";

const DIGITS = "ab".repeat(32);
const ADDRESS = `0x${"70".repeat(20)}`;
const BECH32 = bech32.encode("addr", bech32.toWords(getBytes(ADDRESS)));

/** What the API is asked where a page is opened with a query. */
async function asked(path: "/deposits" | "/explain", query: string) {
  const questions: unknown[] = [];
  await shownPage(depositRoutes(), path, {
    role: "viewer",
    query,
    answer: (question) => {
      if (question.path === "/v1/assets") return { assets: [] };
      questions.push(question.query);
      const explained = { txHash: DIGITS, code: "UNKNOWN", message: "", blockNumber: null };
      return { ...explained, deposits: [], next: null };
    },
  });
  return questions;
}

it("explain a hash as the EVM and as the Cosmos side writes it", async () => {
  for (const text of [`0x${DIGITS}`, DIGITS, DIGITS.toUpperCase(), `0X${DIGITS.toUpperCase()}`]) {
    const questions = await asked("/explain", `txHash=${text}`);
    expect({ text, questions }).toEqual({ text, questions: [{ txHash: `0x${DIGITS}` }] });
  }
  for (const text of [DIGITS.slice(1), `0x${DIGITS}0`, "block 7"]) {
    await expect(asked("/explain", `txHash=${text}`)).rejects.toThrow(/no hash/);
  }
});

it("find deposits by an address in both of its forms", async () => {
  for (const text of [ADDRESS, BECH32, BECH32.toUpperCase()]) {
    const questions = await asked("/deposits", `address=${text}`);
    expect({ text, questions }).toMatchObject({ text, questions: [{ address: ADDRESS }] });
  }
  // What is none in either form is for the API to refuse, in its own words.
  for (const text of [`${BECH32.slice(0, -1)}b`, `addr1${BECH32.slice(5).toUpperCase()}`, "0x7"]) {
    const questions = await asked("/deposits", `address=${text}`);
    expect({ text, questions }).toMatchObject({ text, questions: [{ address: text }] });
  }
});
