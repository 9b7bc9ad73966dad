"""Similar jobs by templates: categories, their sums, the search for templates."""

from shadowtime.services.runtime_distribution.templates.predictor import Templates, TemplatesSettings
from shadowtime.services.runtime_distribution.templates.search import ELITE, Genes, search
from shadowtime.services.runtime_distribution.templates.search_errors import ENDED, PREDICTED, TemplateErrors
