/** Settings of a session on servers that do not take all of them. */
import { describe, expect, it } from "@jest/globals";
import { setSession } from "../../../../runtime/sql/session-settings.js";

/** A server that refuses texts with a word in them, as a whole. */
function serverWithout(word: string, code: string) {
  const taken: string[] = [];
  return {
    taken,
    async query(text: string) {
      if (text.includes(word)) throw Object.assign(new Error(`no ${word} here`), { code });
      taken.push(text);
    },
  };
}

describe("a server", () => {
  it("that cannot see whether its client is gone takes all the others", async () => {
    const server = serverWithout("client_connection_check_interval", "22023");
    await setSession(server, 5_000);
    const [text = "", ...more] = server.taken;
    expect(more).toEqual([]);
    expect(text).toContain("SET idle_in_transaction_session_timeout = 5000");
    expect(text).toContain("SET search_path = public");
    expect(text).toContain("synchronous_commit");
  });

  it.each([
    ["that refuses another one", "jit", "22023"],
    ["that goes away meanwhile", "client_connection_check_interval", "57P01"],
  ])("%s is not used", async (_which, word, code) => {
    await expect(setSession(serverWithout(word, code), 5_000)).rejects.toMatchObject({ code });
  });
});
