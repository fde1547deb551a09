/** Light or dark as it was chosen here before, set before the page is first shown. */
const chosen = localStorage.getItem('parley.theme')
if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen
