/** The page of routes: lists what openapi.json says, and tries a route on a click. */
const routes = document.getElementById("routes");
const filter = document.getElementById("filter");

/** An element with attributes and children; texts are never read as HTML. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** The form of one route. */
function routeForm(path, verb, operation) {
  const inputs = operation.parameters.map((parameter) => {
    const input = element("input", { type: "text" });
    const label = element("label", {}, `${parameter.name} (${parameter.in}) `, input);
    return { parameter, input, label };
  });
  const body = operation.requestBody === undefined ? undefined : element("textarea", { rows: "4" });
  const answer = element("pre", { "aria-live": "polite" });
  const button = element("button", { type: "button" }, "Try it");
  button.addEventListener("click", async () => {
    const query = new URLSearchParams();
    const headers = {};
    let target = path;
    for (const { parameter, input } of inputs) {
      if (input.value === "") continue;
      if (parameter.in === "path") {
        target = target.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      } else if (parameter.in === "header") headers[parameter.name] = input.value;
      else query.append(parameter.name, input.value);
    }
    const search = query.size === 0 ? "" : `?${query}`;
    try {
      const reply = await fetch(`${target}${search}`, {
        method: verb.toUpperCase(),
        headers,
        body: body?.value,
      });
      const text = await reply.text();
      answer.textContent = `${reply.status}\n${JSON.stringify(JSON.parse(text), null, 2)}`;
    } catch (error) {
      answer.textContent = String(error);
    }
  });
  const summary = element("summary", {}, `${verb.toUpperCase()} ${path}`);
  const fields = inputs.map(({ label }) => label);
  const bodyLabel = body === undefined ? [] : [element("label", {}, "body (JSON) ", body)];
  return element("details", {}, summary, ...fields, ...bodyLabel, button, answer);
}

const api = await (await fetch("/swagger/openapi.json")).json();
const forms = Object.entries(api.paths)
  .toSorted(([left], [right]) => (left < right ? -1 : 1))
  .flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => ({
      path,
      form: routeForm(path, verb, operation),
    })),
  );
routes.replaceChildren(...forms.map(({ form }) => form));
filter.addEventListener("input", () => {
  for (const { path, form } of forms) form.hidden = !path.includes(filter.value);
});
