// Storage throws where the browser forbids it; the system's theme holds then.
try {
  const theme = localStorage.getItem("tollgate.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {}
