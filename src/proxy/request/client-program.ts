/** The first word of `User-Agent`, such as `OpenAI/Python`. */
export function clientProgramOf(headers: Headers): string | undefined {
  const agent = headers.get("user-agent");
  if (agent === null || agent === "") return undefined;
  const end = agent.indexOf(" ");
  return end === -1 ? agent : agent.slice(0, end);
}
