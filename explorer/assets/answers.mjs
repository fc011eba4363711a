/**
 * Answers of the explorer's own server, as parsed JSON. A proof may need hundreds of headers, and a reader
 * has so many pages in a minute: that these are used up refutes nothing.
 */

/** Refusals of one answer that are waited out, each for at most as long as a share takes to fill up. */
const MAX_WAITS = 20;
const MAX_WAIT_SECONDS = 60;

/** What was asked could not be had: whoever checks it knows as much as before. */
export class Unanswered extends Error {}

/** @throws Unanswered in place of whatever a step of asking fails with. */
async function asked(path, step) {
  try {
    return await step();
  } catch (error) {
    throw new Unanswered(`${path}: ${error.message}`, { cause: error });
  }
}

/**
 * The answer of a path; where a reader's share is used up, asked for again when the server says.
 * @throws Unanswered
 */
export async function jsonOf(path) {
  const headers = { accept: "application/json" };
  for (let waits = 0; ; waits++) {
    const answer = await asked(path, () => fetch(path, { headers }));
    if (answer.ok) return asked(path, () => answer.json());
    const seconds = Number(answer.headers.get("retry-after"));
    const isSoon = answer.status === 429 && seconds > 0 && seconds <= MAX_WAIT_SECONDS;
    if (!isSoon || waits >= MAX_WAITS) {
      throw new Unanswered(`${path}: HTTP ${answer.status}`);
    }
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  }
}
